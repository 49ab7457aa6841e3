import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { performance } from "node:perf_hooks";

// An HTTP/1.1 client whose connections stand before a load begins, each with one call in flight: so a load tells how calls fare, and
// not how connections are taken. It opens them, says that it is ready, and runs a load for each word with a time.

export type KeptWish = {
  url: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  /** `{session}` in it is one of `sessions`, at random. */
  body: string;
  sessions: number;
  connections: number;
};
export type KeptRun = { seconds: number };
export type KeptReport = { requests: number; refused: number; p50: number; p99: number; worst: number };

const wish = JSON.parse(process.argv[2] ?? "{}") as KeptWish;
const { hostname, port, host } = new URL(wish.url);
const DIGITS = 7;
const END = "\r\n\r\n";

const request = (): string => {
  const session = `${Math.floor(Math.random() * wish.sessions)}`.padStart(DIGITS, "0");
  const body = wish.body.replace("{session}", session);
  const head = Object.entries(wish.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${wish.path} HTTP/1.1\r\nhost: ${host}\r\n${head.join("")}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
};

let until = 0;
let running = 0;
let refused = 0;
let latencies: number[] = [];

/** A connection and the call that is on its way on it. */
class Connection {
  readonly #socket: Socket;
  #text = "";
  #began = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (part) => this.#take(part.toString("latin1")));
    socket.on("close", () => process.exit(1));
  }

  send(): void {
    this.#began = performance.now();
    this.#socket.write(request());
  }

  #take(part: string): void {
    this.#text += part;
    const end = this.#text.indexOf(END);
    const length = Number(/content-length: (\d+)/i.exec(this.#text)?.[1]);
    if (end < 0 || this.#text.length < end + END.length + length) return;
    if (!this.#text.startsWith("HTTP/1.1 200")) refused++;
    this.#text = "";
    latencies.push((performance.now() - this.#began) * 1_000);
    if (performance.now() < until) this.send();
    else if (--running === 0) report();
  }
}

const report = (): void => {
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  const found: KeptReport = { requests: latencies.length, refused, p50: at(0.5), p99: at(0.99), worst: at(1) };
  process.send?.(found);
};

const connections: Connection[] = [];
for (let n = 0; n < wish.connections; n++) {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, "connect");
  connections.push(new Connection(socket));
}

process.on("message", ({ seconds }: KeptRun) => {
  latencies = [];
  refused = 0;
  until = performance.now() + seconds * 1_000;
  running = connections.length;
  for (const connection of connections) connection.send();
});
process.on("disconnect", () => process.exit());
process.send?.("ready");
