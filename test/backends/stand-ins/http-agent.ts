import type { Answer } from "./faults.ts";
import { type Seen, startHttpStandIn } from "./http-stand-in.ts";

const EVENTS = { "content-type": "text/event-stream" };
const JSON_TYPE = { "content-type": "application/json" };

export function eventOf(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A reply as a stream: two or more pieces, the usage, the end. */
export function streamed(text: string, paceMs = 0): Answer {
  const words = text.match(/\S+\s*|\s+/g) ?? [text];
  return {
    headers: EVENTS,
    body: [
      ": here\n\n",
      ...words.map((word) => eventOf("delta", { text: word })),
      eventOf("usage", { usage: { input: 7, output: words.length, cached: 2 } }),
      eventOf("done", {}),
    ].map((piece) => piece),
    paceMs,
    errorInside: eventOf("error", { error: { message: "the lamp went out", retryable: true, retryAfterMs: 20 } }),
  };
}

export function whole(document: object): Answer {
  return {
    headers: JSON_TYPE,
    body: [JSON.stringify(document)],
    errorInside: JSON.stringify({ error: { message: "the lamp went out" } }),
  };
}

type Document = { kind: string; message: { text: string }; history: { text: string }[] };

/** Its reply to a message: the words in reverse order. */
export function replyTo(text: string): string {
  return `You said: ${text} That is all.`;
}

function answerOf(form: "stream" | "json" | "text", paceMs: number, before: (seen: Seen) => Promise<void>) {
  return async (seen: Seen): Promise<Answer> => {
    await before(seen);
    const { kind, message, history } = seen.json as unknown as Document;
    if (kind === "summarise") return whole({ summary: `${history.length} messages`, usage: { input: 3, output: 2 } });
    const reply = replyTo(message.text);
    if (form === "stream") return streamed(reply, paceMs);
    if (form === "json") return whole({ usage: { input: 7, output: 4 }, reply });
    return { headers: { "content-type": "text/plain; charset=utf-8" }, body: [reply] };
  };
}

/** A web service as an agent, as specified by specs/agent-http.yaml. */
export function startHttpAgent(
  form: "stream" | "json" | "text" = "stream",
  paceMs = 0,
  before: (seen: Seen) => Promise<void> = async () => {},
) {
  return startHttpStandIn(answerOf(form, paceMs, before));
}
