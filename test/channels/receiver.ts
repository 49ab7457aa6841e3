import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { root } from "#test/harness/process.ts";

export type Received = { method: string; path: string; headers: Record<string, string>; body: Buffer };

/** The behaviour of a receiver once a request is complete. */
export type Behaviour = (socket: Socket, request: Received) => void;

/** A server of another party. `behave` has the behaviour for each request in turn, the last one for all later ones. */
export async function startReceiver(
  behave: readonly Behaviour[] = [answer(200)],
  { tls }: { tls?: { cert: string; key: string } } = {},
) {
  const requests: Received[] = [];
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let connections = 0;
  let closed = 0;
  const tell = () => {
    for (const look of waiting) look();
  };
  const until = (isSo: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = () => {
        if (!isSo()) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  const onSocket = (socket: Socket) => {
    let bytes = Buffer.alloc(0);
    socket.on("data", (part) => {
      bytes = Buffer.concat([bytes, part]);
      const request = requestOf(bytes);
      if (!request) return;
      bytes = Buffer.alloc(0);
      const next = behave[Math.min(requests.length, behave.length - 1)] as Behaviour;
      requests.push(request);
      next(socket, request);
      tell();
    });
    socket.on("error", () => {});
  };
  const server: Server = tls ? createTlsServer(tls, onSocket) : createServer(onSocket);
  server.on("tlsClientError", () => {});
  server.on("connection", (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on("close", () => {
      closed++;
      sockets.delete(socket);
      tell();
    });
    tell();
  });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${port}`,
    port,
    requests,
    /** Resolves when a number of requests have arrived. */
    received: (count: number): Promise<void> => until(() => requests.length >= count),
    connected: (count: number): Promise<void> => until(() => connections >= count),
    /** Resolves when all connections have closed. */
    left: (): Promise<void> => until(() => connections > 0 && closed === connections),
    connections: () => connections,
    async [Symbol.asyncDispose](): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

function requestOf(bytes: Buffer): Received | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [name = "", value = ""] = line.split(/: (.*)/s);
    headers[name.toLowerCase()] = value;
  }
  const body = bytes.subarray(end + 4);
  return body.length < Number(headers["content-length"] ?? 0) ? undefined : { method, path, headers, body };
}

function head(status: number, headers: Record<string, string | number>) {
  return `HTTP/1.1 ${status} Whatever\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`;
}

export function answer(status: number, headers: Record<string, string | number> = {}, body = ""): Behaviour {
  return (socket) => {
    // A 204 has no length.
    const length: Record<string, number> = status === 204 ? {} : { "content-length": body.length };
    socket.end(head(status, { ...length, ...headers }) + body);
  };
}
export function write(text: string): Behaviour {
  return (socket) => void socket.write(text, "latin1");
}
/** The head, and the first bytes of an answer that does not continue. */
export function stallAfter(status: number): Behaviour {
  return write(`${head(status, { "content-length": 100 })}abc`);
}
export const hang: Behaviour = () => {};
export const reset: Behaviour = (socket) => void socket.resetAndDestroy();
export const leave: Behaviour = (socket) => void socket.end();

/** Writes `piece` again and again, as fast as it is read, until the other side disconnects. */
export function endless(first: string, piece: string): Behaviour {
  return (socket) => {
    socket.write(first);
    const go = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", go);
    go();
  };
}
export function endlessAnswer(status: number): Behaviour {
  return endless(head(status, { "content-type": "text/plain" }), "x".repeat(64 * 1024));
}

function tlsFile(name: string): string {
  return readFileSync(join(root, "test/config/tls", name), "utf8");
}
/** Two certificates for localhost and 127.0.0.1, which are trusted only by explicit configuration. */
export const CERTIFICATE = { cert: tlsFile("cert.pem"), key: tlsFile("key.pem") };
export const OTHER_CERTIFICATE = { cert: tlsFile("other-cert.pem"), key: tlsFile("other-key.pem") };
