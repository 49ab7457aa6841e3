import { connect } from "node:net";
import type { Place } from "./contract.ts";
import { settling } from "./ledger.ts";
import { checkHead, checkReply, type Reply } from "./rest.ts";

/** A connection to which a test writes any bytes. Replies are checked like all others. */
export async function openConnection(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port), noDelay: true });
  let text = "";
  let interim = 0;
  let failure: Error | undefined;
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const look of waiting) look();
  };
  socket.setEncoding("latin1");
  socket.on("data", (part: string) => {
    text += part;
    wake();
  });
  socket.on("error", (error) => {
    failure = error;
  });
  const closed = new Promise<void>((resolve) =>
    socket.on("close", () => {
      resolve();
      wake();
    }),
  );
  await new Promise<void>((resolve) => socket.once("connect", resolve).once("close", resolve));

  const when = <T>(look: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const attempt = () => {
        const found = look();
        if (found === undefined && !socket.closed) return;
        waiting.delete(attempt);
        if (found !== undefined) resolve(found);
        else
          reject(new Error(`the connection closed (${failure?.message ?? "no error"}) after ${JSON.stringify(text)}`));
      };
      waiting.add(attempt);
      attempt();
    });

  return {
    write: (bytes: string | Uint8Array) => void socket.write(bytes),
    /** Resolves when the bytes have left this process, or the connection has closed. */
    flush: (bytes: Uint8Array) =>
      Promise.race([new Promise<void>((resolve) => socket.write(bytes, () => resolve())), closed]),
    /** The next complete reply. Interim ones (100 Continue) are omitted and counted. */
    reply: (place: Place): Promise<Reply> =>
      settling(async () => {
        const { status, headers, body } = await when(() => {
          for (;;) {
            const parsed = parseReply(text, socket.closed || socket.readableEnded, place.method === "HEAD");
            if (!parsed) return undefined;
            text = text.slice(parsed.length);
            if (parsed.status >= 200) return parsed;
            interim++;
          }
        });
        return checkReply(place, status, headers, body);
      }),
    /** The head of a stream, as soon as it has arrived; the test reads the rest. */
    head: (place: Place): Promise<Headers> =>
      settling(async () => {
        const { status, headers } = await when(() => parseHead(text));
        checkHead(place, status, headers);
        return headers;
      }),
    /** Resolves when the received bytes match. */
    until: (arrived: (text: string) => boolean) => when(() => (arrived(text) ? text : undefined)),
    interim: () => interim,
    /** The number of bytes that the system accepted from this process. */
    taken: () => socket.bytesWritten - socket.writableLength,
    closed,
    socket,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      await closed;
    },
  };
}

export type Connection = Awaited<ReturnType<typeof openConnection>>;

/** The reply of a complete connection, validated against the contract. */
export function replyIn(place: Place, text: string): Reply {
  const parsed = parseReply(text, true, place.method === "HEAD");
  if (!parsed) throw new Error(`no whole reply: ${JSON.stringify(text)}`);
  return checkReply(place, parsed.status, parsed.headers, parsed.body);
}

type Parsed = { status: number; headers: Headers; body: string; length: number };

function parseHead(text: string): Omit<Parsed, "body"> | undefined {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [statusLine = "", ...lines] = text.slice(0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  if (!status) throw new Error(`no status line: ${statusLine}`);
  const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s, 2) as [string, string]));
  return { status, headers, length: headEnd + 4 };
}

/** The reply at the beginning of the received bytes; undefined while it is not complete. */
function parseReply(text: string, ended: boolean, isHead: boolean): Parsed | undefined {
  const head = parseHead(text);
  if (!head) return undefined;
  const { status, headers, length: from } = head;
  const declared = headers.get("content-length");
  if (status < 200 || status === 204 || status === 304 || isHead) return { status, headers, body: "", length: from };
  if (headers.get("transfer-encoding") === "chunked") return parseChunks(text, from, { status, headers });
  const length = declared === null ? (ended ? text.length - from : Infinity) : Number(declared);
  if (text.length < from + length) return undefined;
  return { status, headers, body: utf8(text.slice(from, from + length)), length: from + length };
}

function parseChunks(text: string, from: number, head: { status: number; headers: Headers }): Parsed | undefined {
  let body = "";
  for (let at = from; ; ) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (text.length < end) return undefined;
    if (size === 0) return { ...head, body: utf8(body), length: end };
    body += text.slice(lineEnd + 2, end - 2);
    at = end;
  }
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, "latin1").toString("utf8");
}

/** A request in HTTP/1.1. The Host is this machine by default; a body gets its length. */
export function requestText(
  { method, path }: Place,
  headers: Record<string, string> = {},
  body?: string | Uint8Array,
): Buffer {
  const given = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const framed = given.has("content-length") || given.has("transfer-encoding");
  const all = {
    ...(given.has("host") ? {} : { host: "127.0.0.1" }),
    ...headers,
    ...(body !== undefined && !framed ? { "content-length": Buffer.byteLength(body) } : {}),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), Buffer.from(body ?? "")]);
}

/** One request on a separate connection. */
export async function exchange(
  url: string,
  place: Place,
  headers: Record<string, string> = {},
  body?: string | Uint8Array,
): Promise<Reply> {
  await using connection = await openConnection(url);
  connection.write(requestText(place, headers, body));
  return await connection.reply(place);
}
