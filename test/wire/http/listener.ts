import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { createEvents } from "#observe/events.ts";
import { createLogger } from "#observe/logger.ts";
import { createRegistry } from "#observe/metrics.ts";
import { readBody } from "#wire/call/body.ts";
import { type ListenOptions, listen } from "#wire/http/listen.ts";
import { createResetLimit } from "#wire/http/reset-limit.ts";

type Answer = (req: IncomingMessage, res: ServerResponse, body: string) => void;

/** Counts resets by connection. */
export const BY_CONNECTION = createResetLimit({ clock: systemClock, keyOf: (socket) => socket });

/** A listener with the given answers, which stores the received bodies. */
export async function listenHere(answer: Answer, options: Partial<ListenOptions> = {}) {
  const bodies: string[] = [];
  /** The listener's ends of the connections. */
  const accepted: Socket[] = [];
  const logger = createLogger({ level: "error", format: "json", write: () => {} });
  const listening = await listen({
    host: "127.0.0.1",
    port: 0,
    tls: undefined,
    maxConnections: undefined,
    newRequestId: () => "req_01M7YN2C7DT5V3D1HM9SE7C4WP",
    events: createEvents({ logger, registry: createRegistry() }),
    clock: systemClock,
    resets: BY_CONNECTION,
    admits: (socket) => accepted.push(socket) > 0,
    onRequest: (req, res) => {
      readBody({ req, res }, 1_000_000).then((body) => {
        bodies.push(body.toString());
        answer(req, res, body.toString());
      });
    },
    ...options,
  });
  onTestFinished(() => listening.close());
  return { ...listening, bodies, accepted };
}

export async function open(
  port: number,
  options: { allowHalfOpen?: boolean } = {},
): Promise<{ socket: Socket; until(text: string): Promise<string>; read: () => string }> {
  const socket = connect({ port, host: "127.0.0.1", ...options }).on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  let text = "";
  socket.setEncoding("latin1").on("data", (part) => {
    text += part;
  });
  const until = async (part: string) => {
    while (!text.includes(part))
      await Promise.race([
        once(socket, "data"),
        once(socket, "close").then(() => Promise.reject(new Error(`closed after ${text}`))),
      ]);
    return text;
  };
  return { socket, until, read: () => text };
}

export function post(body: string, more = ""): string {
  return `POST /say HTTP/1.1\r\nHost: localhost\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
export const echo: Answer = (_req, res, body) => {
  const text = `<${body}>`;
  res.writeHead(200, { "content-type": "text/plain", "content-length": Buffer.byteLength(text) }).end(text);
};
