import type { Dispatcher } from "undici";
import { yieldToOthers } from "#kit/yield.ts";
import { type Answer, targetOf } from "./ask.ts";
import { eventsOf, type Sent } from "./server-events.ts";

/** The number of events that an SDK reads in one tick of the event loop. A tick may take milliseconds. */
const EVENTS_AT_ONCE = 8;

/** The request that an SDK passes to its `fetch`. */
export function requestOf(input: string | URL | Request, init: RequestInit = {}) {
  return {
    method: (init.method ?? "GET") as Dispatcher.HttpMethod,
    ...targetOf(input instanceof Request ? input.url : input),
    headers: Object.fromEntries(new Headers(init.headers)),
    body: typeof init.body === "string" ? init.body : null,
  };
}

/** An answer for an SDK, with these pieces as its body. A cancellation discards the answer, even before the first read. */
export function responseOf(answer: Answer, pieces: AsyncIterator<Uint8Array, void>): Response {
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value as Uint8Array);
      },
      cancel: () => answer.discard(),
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, headOf(answer));
}

/** The status and headers of an answer. */
export function headOf({ status, headers }: Answer): { status: number; headers: [string, string][] } {
  const pairs = Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((one) => [name, one]));
  return { status, headers: pairs as [string, string][] };
}

export function isEventStream({ headers }: Answer): boolean {
  return /^text\/event-stream\b/i.test(String(headers["content-type"]));
}

/**
 * The events of an answer, each written again, so that an SDK gets only complete events, a few in each tick of the event loop. Each is passed to
 * `check` first, which may throw. The answer is discarded at the end.
 */
export async function* rewritten(
  answer: Answer,
  limits: { all: number; one: number },
  check: (event: Sent) => void,
): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const events of eventsOf(answer, limits.all, limits.one)) {
      for (let from = 0; from < events.length; from += EVENTS_AT_ONCE) {
        const some = events.slice(from, from + EVENTS_AT_ONCE);
        some.forEach(check);
        yield Buffer.from(some.map(textOf).join(""));
        if (events.length > EVENTS_AT_ONCE) await yieldToOthers();
      }
    }
  } finally {
    answer.discard();
  }
}

function textOf(event: Sent): string {
  if (event === "comment") return ":\n\n";
  const { name, id, data } = event;
  const head = `${name === "" ? "" : `event: ${name}\n`}${id === undefined ? "" : `id: ${id}\n`}`;
  return `${head}data: ${data.replaceAll("\n", "\ndata: ")}\n\n`;
}
