import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { piecesOf } from "../stand-in-words.ts";

// A client that reads streams of pieces and holds each of them to what it should be. It opens its connections, says that it is ready,
// begins its streams one after another over `rampMs`, and reports when all have ended. Bytes are read into one buffer, and of an event
// nothing is parsed but its text.

export type TokenWish = {
  url: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  /** `{stream}` in it is the stream's number, in four digits. */
  body: string;
  /** How many streams at once, and how many on each connection one after another. */
  streams: number;
  turns: number;
  pieces: number;
  rampMs: number;
  /** How fast the pieces should come; undefined: at once. */
  perSecond?: number;
  /** The stand-in names streams; without it all of them are the same. */
  isNamed: boolean;
  /** What begins an event with a piece, what then stands before its text, and what begins the last event. */
  event: string;
  text: string;
  end: string;
};
export type TokenReport = {
  pieces: number;
  /** Events that they came in. */
  events: number;
  /** Streams that were not answered, broke off, or were not what they should be. */
  wrong: number;
  /** The median time from a request to its first piece, in microseconds. */
  first: number;
};

const wish = JSON.parse(process.argv[2] ?? "{}") as TokenWish;
const { hostname, port, host } = new URL(wish.url);
const BUFFER = Buffer.allocUnsafe(256 * 1024);
const HEAD = "HTTP/1.1 ";
const STATUS = "200";
const QUOTE = '"';
const DUE_MS = wish.perSecond === undefined ? 0 : ((wish.pieces - 1) * 1_000) / wish.perSecond;
const STUCK_MS = 60_000;

const firsts: number[] = [];
let pieces = 0;
let events = 0;
let wrong = 0;
let left = wish.streams;

const requestOf = (name: string): string => {
  const body = wish.body.replace("{stream}", name);
  const head = Object.entries(wish.headers).map(([key, value]) => `${key}: ${value}\r\n`);
  return `POST ${wish.path} HTTP/1.1\r\nhost: ${host}\r\n${head.join("")}content-length: ${body.length}\r\n\r\n${body}`;
};

/** A connection and the stream that comes by it. */
class Stream {
  readonly #request: string;
  readonly #expected: string;
  #socket: Socket | undefined = undefined;
  #rest = "";
  #got = 0;
  #turns = 0;
  #began = 0;
  #first = 0;
  #hasHead = false;

  constructor(name: string) {
    this.#request = requestOf(name);
    this.#expected = piecesOf(wish.isNamed ? name : undefined, wish.pieces).join("");
  }

  async open(): Promise<void> {
    const callback = (bytes: number) => {
      this.#take(BUFFER.toString("latin1", 0, bytes));
      return true;
    };
    const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread: { buffer: BUFFER, callback } });
    this.#socket = socket;
    await once(socket, "connect");
    socket.on("error", () => {});
    socket.on("close", () => this.#turns < wish.turns && this.#end(false));
  }

  begin(): void {
    this.#got = 0;
    this.#first = 0;
    this.#hasHead = false;
    this.#rest = "";
    this.#began = performance.now();
    this.#socket?.write(this.#request, "latin1");
  }

  #take(part: string): void {
    const text = this.#rest === "" ? part : this.#rest + part;
    let at = 0;
    if (!this.#hasHead) {
      // Before it the last bytes of the answer to the one before may come.
      at = text.indexOf(HEAD);
      if (text.length < at + HEAD.length + STATUS.length || at === -1) {
        this.#rest = text;
        return;
      }
      at += HEAD.length;
      if (!text.startsWith(STATUS, at)) {
        this.#end(false);
        return;
      }
      this.#hasHead = true;
    }
    for (;;) {
      const event = text.indexOf(wish.event, at);
      if (event === -1) break;
      const from = text.indexOf(wish.text, event);
      const to = from === -1 ? -1 : text.indexOf(QUOTE, from + wish.text.length);
      if (to === -1) {
        this.#rest = text.slice(event);
        return;
      }
      this.#piece(text.slice(from + wish.text.length, to));
      at = to;
    }
    const isEnd = text.indexOf(wish.end, at) !== -1;
    // No name of an event is longer than this.
    this.#rest = text.slice(Math.max(at, text.length - 64));
    if (isEnd) this.#end(true);
  }

  #piece(text: string): void {
    if (text === "") return;
    if (this.#first === 0) {
      this.#first = performance.now();
      firsts.push((this.#first - this.#began) * 1_000);
    }
    events++;
    if (!this.#expected.startsWith(text, this.#got)) wrong++;
    this.#got += text.length;
  }

  #end(isWhole: boolean): void {
    const all = this.#expected.length;
    if (!isWhole || this.#got !== all) wrong++;
    pieces += Math.floor((this.#got * wish.pieces) / all);
    this.#turns = isWhole ? this.#turns + 1 : wish.turns;
    if (this.#turns < wish.turns) setImmediate(() => this.begin());
    else {
      this.#socket?.destroy();
      if (--left === 0) report();
    }
  }
}

const report = (): void => {
  firsts.sort((a, b) => a - b);
  const found: TokenReport = { pieces, events, wrong, first: firsts[firsts.length >> 1] ?? Number.NaN };
  process.send?.(found);
};

const streams = Array.from({ length: wish.streams }, (_, n) => new Stream(String(n).padStart(4, "0")));
for (const stream of streams) await stream.open();

process.once("message", () => {
  const began = performance.now();
  const begin = (at: number): void => {
    const due = Math.ceil(((performance.now() - began) / wish.rampMs) * streams.length);
    let next = at;
    for (; next < streams.length && next <= due; next++) streams[next]?.begin();
    if (next < streams.length) setTimeout(begin, 1, next);
  };
  begin(0);
  setTimeout(
    () => {
      wrong += left;
      report();
    },
    DUE_MS + wish.rampMs + STUCK_MS,
  ).unref();
});
process.on("disconnect", () => process.exit());
process.send?.("ready");
