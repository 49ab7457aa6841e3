import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";

/** The answer of a stand-in without a fault, in its pieces: one event or line each, if there are any. */
export type Answer = {
  status?: number;
  headers?: Readonly<Record<string, string>>;
  body: readonly (string | Buffer)[];
  /** The wait before each piece except the first. */
  paceMs?: number;
  /** Called for each written piece, with the number of pieces before it. */
  onPiece?: (n: number) => void;
  /** The piece with which this protocol reports an error in the middle of a valid answer. */
  errorInside?: string;
  /** It has no end. */
  staysOpen?: boolean;
};

/** Part of every answer with an error: no caller may ever get it. */
export const RAW = "raw-words-of-the-remote sk-secret-key-1234567890 at /srv/remote/app.py:42";
const HTML = `<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>${RAW}</body></html>`;
const MIB = 1024 * 1024;
const HUGE_BYTES = 100 * MIB;

type Misbehaviour = (answer: Answer, req: IncomingMessage, res: ServerResponse) => Promise<void> | void;

function half({ body }: Answer) {
  return Math.max(1, Math.floor(body.length / 2));
}

function head(answer: Answer, res: ServerResponse, more: Record<string, string> = {}): void {
  res.writeHead(answer.status ?? 200, { ...answer.headers, ...more });
  res.flushHeaders();
}

/** Resolves false when the caller has left. */
function write(res: ServerResponse, piece: string | Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    if (res.destroyed || res.socket?.destroyed !== false) return resolve(false);
    res.write(piece, (error) => resolve(!error));
  });
}

async function pieces(
  res: ServerResponse,
  { body, paceMs = 0, onPiece }: Answer,
  count = body.length,
): Promise<boolean> {
  for (const [n, piece] of body.slice(0, count).entries()) {
    if (n > 0 && paceMs > 0) await sleep(paceMs);
    if (!(await write(res, piece))) return false;
    onPiece?.(n);
  }
  return true;
}

async function forever(res: ServerResponse, piece: string | Buffer, bytes = Number.POSITIVE_INFINITY): Promise<void> {
  const size = Buffer.byteLength(piece);
  for (let sent = 0; sent < bytes; sent += size) {
    if (!(await write(res, piece))) return;
    // The caller runs in the same process.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function status(code: number, headers: Record<string, string> = {}): Misbehaviour {
  return (_answer, _req, res) => {
    res.writeHead(code, { "content-type": "application/json", ...headers });
    res.end(JSON.stringify({ type: "error", error: { message: RAW, type: "some_error", code: "some_code" } }));
  };
}

function whole(type: string, body: string | Buffer): Misbehaviour {
  return (_answer, _req, res) => {
    res.writeHead(200, { "content-type": type });
    res.end(body);
  };
}

let bomb: Buffer | undefined;
/** A gigabyte in a megabyte: concatenated gzip members. */
function bombOf(): Buffer {
  bomb ??= gzipSync(Buffer.alloc(16 * MIB, "data: {}\n\n"));
  return bomb;
}

/** The failures of a remote over HTTP, in any protocol. */
export const FAULTS = {
  "hang before the first byte": () => {},
  "hang after the head": (answer, _req, res) => head(answer, res),
  "hang in the middle": async (answer, _req, res) => {
    head(answer, res);
    await pieces(res, answer, half(answer));
  },
  /** Half of a piece, and then a regular end. */
  "half a frame": async (answer, _req, res) => {
    head(answer, res);
    await pieces(res, answer, half(answer));
    const next = Buffer.from(answer.body[half(answer)] ?? answer.body[0] ?? "");
    await write(res, next.subarray(0, Math.ceil(next.length / 2)));
    res.end();
  },
  html: whole("text/html", HTML),
  /** A web page instead of a stream of events or JSON. */
  "html under a good head": (answer, _req, res) => {
    head(answer, res);
    res.end(HTML);
  },
  "half JSON": whole("application/json", `{"error":{"message":"${RAW}`),
  "an empty body": (answer, _req, res) => {
    head(answer, res);
    res.end();
  },
  "an endless line": async (answer, _req, res) => {
    head(answer, res);
    if (await write(res, "data: ")) await forever(res, Buffer.alloc(MIB, "x"));
  },
  "wrong UTF-8": async (answer, _req, res) => {
    head(answer, res);
    for (const piece of answer.body) {
      const bytes = Buffer.from(piece);
      // Inside its longest word, so that the surrounding text does not change.
      const word = /[a-z]{4,}(?=[^":]*(?:"[\]}\s]*)?$)/i.exec(bytes.toString("latin1"));
      if (word) bytes[word.index + 1] = 0xff;
      if (!(await write(res, bytes))) return;
    }
    res.end();
  },
  "a compression bomb": async (answer, _req, res) => {
    head(answer, res, { "content-encoding": "gzip" });
    await forever(res, bombOf(), 64 * bombOf().length);
    res.end();
  },
  "100 MB": async (answer, _req, res) => {
    head(answer, res);
    const piece = Buffer.from(answer.body[half(answer)] ?? answer.body[0] ?? "x");
    const many = Buffer.concat(Array.from({ length: Math.ceil(MIB / piece.length) }, () => piece));
    await forever(res, many, HUGE_BYTES);
    res.end();
  },
  "a body without end": async (answer, _req, res) => {
    head(answer, res);
    if (!(await pieces(res, answer, half(answer)))) return;
    await forever(res, Buffer.from(answer.body[half(answer)] ?? answer.body[0] ?? "x"));
  },
  "400": status(400),
  "401": status(401),
  "403": status(403),
  "404": status(404),
  "413": status(413),
  "429": status(429),
  "429 with Retry-After": status(429, { "retry-after": "7" }),
  "429 with Retry-After for long": status(429, { "retry-after": "86400" }),
  "500": status(500),
  "503 with Retry-After": status(503, { "retry-after": "1" }),
  "529": status(529),
  "500 in HTML": (_answer, _req, res) => {
    res.writeHead(500, { "content-type": "text/html" });
    res.end(HTML);
  },
  "500 without end": async (_answer, _req, res) => {
    res.writeHead(500, { "content-type": "application/json" });
    await forever(res, Buffer.alloc(MIB, "x"));
  },
  redirect: (_answer, _req, res) => {
    res.writeHead(302, { location: "http://169.254.169.254/latest/meta-data" });
    res.end();
  },
  "an error inside at once": async (answer, _req, res) => {
    head(answer, res);
    await write(res, answer.errorInside ?? JSON.stringify({ error: { message: RAW } }));
    res.end();
  },
  "an error inside": async (answer, _req, res) => {
    head(answer, res);
    await pieces(res, answer, half(answer));
    await write(res, answer.errorInside ?? JSON.stringify({ error: { message: RAW } }));
    res.end();
  },
  "reset before the answer": (_answer, req) => {
    req.socket.resetAndDestroy();
  },
  "reset in the middle": async (answer, req, res) => {
    head(answer, res);
    await pieces(res, answer, half(answer));
    req.socket.resetAndDestroy();
  },
  /** The connection ends regularly, in the middle of the body. */
  "cut in the middle": async (answer, req, res) => {
    head(answer, res);
    await pieces(res, answer, half(answer));
    req.socket.end();
  },
  "no HTTP": (_answer, req) => void req.socket.end("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
  "an endless head": async (_answer, req) => {
    const { socket } = req;
    socket.write("HTTP/1.1 200 OK\r\n");
    while (!socket.destroyed) {
      socket.write(`x-more: ${"x".repeat(8_000)}\r\n`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
} satisfies Record<string, Misbehaviour>;

export type Fault = keyof typeof FAULTS;

/** Faults that end only at a limit of the core. */
export const ENDLESS: readonly Fault[] = [
  "hang before the first byte",
  "hang after the head",
  "hang in the middle",
  "a body without end",
];

/** Answers a request normally, or with `fault`. */
export async function giveAnswer(
  answer: Answer,
  fault: Fault | undefined,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  if (fault) return await (FAULTS[fault] as Misbehaviour)(answer, req, res);
  head(answer, res);
  if ((await pieces(res, answer)) && !answer.staysOpen) res.end();
}
