import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { serve } from "./serve.ts";

export const turnId = "turn_01M7YN0XEMM1B7E5S8YF3GKP2N";

type Seen = { method: string; url: string; headers: IncomingMessage["headers"]; body: unknown };
export type Answer = (res: ServerResponse) => void;

/** A server that answers one request after another, each in its own way. */
export async function answerServer(answers: Answer[]) {
  const seen: Seen[] = [];
  const served = await serve(async (req, res) => {
    const body = await text(req);
    const { method, url: target, headers } = req;
    seen.push({
      method: String(method),
      url: String(target),
      headers,
      body: body === "" ? undefined : JSON.parse(body),
    });
    answers[seen.length - 1]?.(res);
  });
  return { ...served, seen };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (res) =>
    res
      .writeHead(status, { "content-type": "application/json", "x-request-id": "req_9", ...headers })
      .end(JSON.stringify(body));
}
export function problem(name: string, status: number, more: object = {}): Answer {
  return json(
    status,
    { type: `/docs/errors.html#${name}`, title: "No", status, detail: "Because.", request_id: "req_1", ...more },
    { "content-type": "application/problem+json" },
  );
}
export const soon = { retry_after_ms: 1 };
export const cut: Answer = (res) => res.destroy();
export function event(name: string, id: string, data: object = {}): string {
  return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify({ turn_id: turnId, ...data })}\n\n`;
}
export function events(end: "end" | "cut" | "open", ...chunks: string[]): Answer {
  return (res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunks.join(""), () => {
      if (end === "end") res.end();
      if (end === "cut") setTimeout(() => res.destroy(), 20);
    });
  };
}
export function keysOf(seen: Seen[]) {
  return seen.map(({ headers }) => headers["idempotency-key"]);
}
