import type { Agent, Dispatcher } from "undici";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { retryAfterOf } from "#kit/retry-after.ts";
import { jsonOf } from "../json.ts";
import { type Answer, ask, MIB, streamOf, targetOf } from "../outbound/ask.ts";
import { eventsOf } from "../outbound/server-events.ts";
import { isWorthAnotherTry, statusWords } from "../outbound/words.ts";
import { WHO } from "./card.ts";

const WHOLE_BYTES = 16 * MIB;
const STREAM_BYTES = 32 * MIB;
/** The number of events that the SDK reads in one tick of the event loop. A tick may take milliseconds. */
const EVENTS_AT_ONCE = 16;

export type FetchSettings = {
  headers: Readonly<Record<string, string>>;
  clock: Clock;
  /** The only origin that requests may go to: the card's addresses come from the other side. */
  origin: string;
};

/**
 * `fetch` for the SDK: it follows no redirects, accepts no encodings, and limits everything that it reads. An answer with an
 * error status, without valid UTF-8 or without valid JSON becomes a BackendError, and its body is not shown to anybody.
 */
export const createFetch =
  (agent: Agent, { headers, clock, origin }: FetchSettings): typeof fetch =>
  async (input, init = {}) => {
    const target = targetOf(input instanceof Request ? input.url : input);
    if (target.origin !== origin)
      throw new BackendError(`${WHO} names an address at another host, where nothing is sent`);
    const own = Object.fromEntries(new Headers(init.headers));
    const request = {
      ...target,
      method: (init.method ?? "GET") as Dispatcher.HttpMethod,
      headers: { "user-agent": "agent-gateway", ...headers, ...own, "accept-encoding": "identity" },
      body: typeof init.body === "string" ? init.body : null,
    };
    const answer = await ask(agent, WHO, request, init.signal);
    const { status, headers: head } = answer;
    const refuse = (error: BackendError): never => {
      answer.discard();
      throw error;
    };
    if (status < 200 || status >= 300) {
      const retryAfterMs = retryAfterOf(String(head["retry-after"] ?? ""), clock.now());
      const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
      refuse(new BackendError(`${WHO} ${statusWords(status)}`, { retryable: isWorthAnotherTry(status), ...wait }));
    }
    if ((head["content-encoding"] ?? "identity") !== "identity")
      refuse(new BackendError(`${WHO} encoded its answer, which it was asked not to`));
    const type = String(head["content-type"] ?? "");
    const made = { status, headers: { "content-type": type } };
    if (/^text\/event-stream\b/i.test(type)) return new Response(streamOf(rewritten(answer), answer), made);
    const text = await answer.text(WHOLE_BYTES);
    checkJson(text);
    return new Response(text, made);
  };

/** The events of an answer, each written anew, so that the reader gets only whole events of JSON. */
async function* rewritten(answer: Answer): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const events of eventsOf(answer, STREAM_BYTES)) {
      for (let from = 0; from < events.length; from += EVENTS_AT_ONCE) {
        if (from > 0) await new Promise((resolve) => setImmediate(resolve));
        const texts = events.slice(from, from + EVENTS_AT_ONCE).map((event) => {
          if (event === "comment") return ":\n\n";
          checkJson(event.data);
          return `${event.name === "" ? "" : `event: ${event.name}\n`}data: ${event.data.replaceAll("\n", "\ndata: ")}\n\n`;
        });
        yield Buffer.from(texts.join(""));
      }
    }
  } finally {
    answer.discard();
  }
}

const checkJson = (text: string): void => {
  if (jsonOf(text) === undefined) throw new BackendError(`${WHO} answered with something that is no JSON`);
};
