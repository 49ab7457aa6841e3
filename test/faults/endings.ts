import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import fc from "fast-check";

/** A request, and a reply, without the framing of HTTP. */
export type Request = { method: string; path: string; body: string };
export type Reply = { status?: number; type?: string; body: string };

/** The framing of an answer, and the way in which it is sent and cut off. */
export type Ending = {
  version: "1.0" | "1.1";
  /** The end of its body. */
  by: "length" | "chunks" | "connection";
  /** The connection closes after an answer with its own end. */
  closes: boolean;
  /** The number of parts in which it is sent, with a pause before each except the first. */
  parts: number;
  /** `end`: the connection ends before the answer. `reset`: the same by a TCP reset. */
  cut: "none" | "end" | "reset";
  /** The percentage of its bytes that are sent before that. */
  percent: number;
  /** The request that gets it; others get a plain answer. */
  nth: number;
  /** The length of the padding in its body. */
  bytes: number;
};

export const endings: fc.Arbitrary<Ending> = fc.record({
  version: fc.constantFrom("1.0", "1.1"),
  by: fc.constantFrom("length", "chunks", "connection"),
  closes: fc.boolean(),
  parts: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 40 })),
  cut: fc.constantFrom("none", "none", "end", "reset"),
  percent: fc.nat(100),
  nth: fc.nat(5),
  bytes: fc.integer({ min: 20_000, max: 60_000 }),
});

/** HTTP/1.0 has no chunks. */
function framing({ by, version }: Ending) {
  return by === "chunks" && version === "1.0" ? "length" : by;
}

function framed({ status = 200, type, body }: Reply, ending: Ending): Buffer {
  const by = framing(ending);
  const bytes = Buffer.from(body);
  const head = [`HTTP/${ending.version} ${status} Sent`, ...(type === undefined ? [] : [`content-type: ${type}`])];
  if (ending.closes) head.push("connection: close");
  else if (ending.version === "1.0" && by !== "connection") head.push("connection: keep-alive");
  if (by === "length") head.push(`content-length: ${bytes.length}`);
  if (by === "chunks") head.push("transfer-encoding: chunked");
  const start = Buffer.from(`${head.join("\r\n")}\r\n\r\n`);
  if (by !== "chunks") return Buffer.concat([start, bytes]);
  const all = [start];
  for (let from = 0; from < bytes.length; from += 1_000) {
    const chunk = bytes.subarray(from, from + 1_000);
    all.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return Buffer.concat([...all, Buffer.from("0\r\n\r\n")]);
}

/** Node's own `resetAndDestroy()` ends the connection before it resets it. */
export function reset(socket: Socket) {
  return Object.assign(socket, { resetAndClosing: true }).destroy();
}

async function send(socket: Socket, reply: Reply, ending: Ending): Promise<void> {
  const all = framed(reply, ending);
  const bytes = ending.cut === "none" ? all : all.subarray(0, Math.floor((all.length * ending.percent) / 100));
  const step = Math.max(1, Math.ceil(bytes.length / ending.parts));
  for (let from = 0; from < bytes.length; from += step) {
    if (from > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    if (socket.destroyed) return;
    socket.write(bytes.subarray(from, from + step));
  }
  if (ending.cut === "reset") reset(socket);
  else if (ending.cut === "end" || ending.closes || framing(ending) === "connection") socket.end();
}

const PLAIN = {
  version: "1.1",
  by: "length",
  closes: false,
  parts: 1,
  cut: "none",
  percent: 100,
  nth: 0,
  bytes: 0,
} as const;

/** A server whose answers end as the test specifies. */
export async function startEndings() {
  let [ending, count]: [Ending, number] = [PLAIN, 0];
  let replyTo: (request: Request) => Reply = () => ({ body: "" });
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let unread = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (bytes) => {
      unread = Buffer.concat([unread, bytes]);
      const headLength = unread.indexOf("\r\n\r\n") + 4;
      if (headLength < 4) return;
      const head = unread.subarray(0, headLength).toString("latin1");
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (unread.length < headLength + length) return;
      const body = unread.subarray(headLength, headLength + length).toString();
      unread = unread.subarray(headLength + length);
      const [method = "", path = ""] = head.split(" ");
      const isIt = count++ === ending.nth;
      void send(socket, replyTo({ method, path, body }), isIt ? ending : PLAIN);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Starts another case. */
    say(to: typeof replyTo, how: Ending = PLAIN) {
      [replyTo, ending, count] = [to, how, 0];
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
