import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { type Answer, type Fault, giveAnswer } from "./faults.ts";

/** A received request. */
export type Seen = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  /** The body, if it is JSON. */
  json: Record<string, unknown>;
  /** The fault of its answer. */
  fault: Fault | undefined;
  /** Resolves when its answer or its connection has ended: true if the caller disconnected before the answer's end. */
  left: Promise<boolean>;
};

/** A server of another party, on a free port of this machine. It answers normally until a fault is set. */
export async function startHttpStandIn(answer: (seen: Seen) => Answer | Promise<Answer>) {
  const seen: Seen[] = [];
  const waiting: ((one: Seen) => void)[] = [];
  let taken = 0;
  let faults: (Fault | undefined)[] = [];
  let always: Fault | undefined;
  let alwaysOf: string | undefined;
  let connections = 0;

  const server = createServer(async (req, res) => {
    const left = new Promise<boolean>((resolve) => res.once("close", () => resolve(!res.writableFinished)));
    const parts: Buffer[] = [];
    req.on("error", () => {});
    res.on("error", () => {});
    for await (const part of req) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    const isMet = alwaysOf === undefined || alwaysOf === req.method;
    const fault = faults.length > 0 ? faults.shift() : isMet ? always : undefined;
    const one: Seen = {
      method: req.method ?? "",
      path: req.url ?? "",
      headers: req.headers,
      text,
      json: text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {},
      fault,
      left,
    };
    seen.push(one);
    if (waiting.length > 0) {
      taken++;
      waiting.shift()?.(one);
    }
    await giveAnswer(await answer(one), fault, req, res);
  });
  server.on("connection", (socket) => {
    connections++;
    socket.on("error", () => {});
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    /** All requests so far. */
    seen: seen as readonly Seen[],
    /** The number of connections so far. */
    connections: () => connections,
    /** The next request that no test has used yet. */
    next: (): Promise<Seen> =>
      taken < seen.length ? Promise.resolve(seen[taken++] as Seen) : new Promise((resolve) => waiting.push(resolve)),
    /** Sets the faults of the next requests, one each. */
    failNext(...next: (Fault | undefined)[]): void {
      faults = next;
    },
    /** Sets the fault of every request, or of every request with a method, until it is changed. */
    fail(fault: Fault | undefined, method?: string): void {
      always = fault;
      alwaysOf = method;
    },
    /** Forgets all requests and faults. */
    reset(): void {
      seen.length = 0;
      taken = 0;
      faults = [];
      always = undefined;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type HttpStandIn = Awaited<ReturnType<typeof startHttpStandIn>>;
