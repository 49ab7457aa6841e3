import type { Agent } from "undici";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { ask, MIB } from "#outbound/ask.ts";
import { headOf, isEventStream, requestOf, responseOf, rewritten } from "#outbound/fetch.ts";
import { isWorthAnotherTry, statusWords } from "#outbound/words.ts";
import { jsonOf } from "../json.ts";
import { WHO } from "./card.ts";

const WHOLE_BYTES = 16 * MIB;
const STREAM_BYTES = 32 * MIB;

type FetchSettings = {
  headers: Readonly<Record<string, string>>;
  clock: Clock;
  /** The only origin that requests may go to: the card's addresses come from the other side. */
  origin: string;
};

/**
 * `fetch` for the SDK. An answer with an error status, without valid UTF-8 or without valid JSON becomes a BackendError, and its body is not shown.
 */
export function createFetch(agent: Agent, { headers, clock, origin }: FetchSettings): typeof fetch {
  return async (input, init) => {
    const request = requestOf(input, init);
    if (request.origin !== origin)
      throw new BackendError(`${WHO} names an address on another host, which the gateway does not use`);
    const sent = { "user-agent": "agent-gateway", ...headers, ...request.headers };
    const answer = await ask(agent, WHO, { ...request, headers: sent }, init?.signal);
    const { status } = answer;
    if (status < 200 || status >= 300) {
      answer.discard();
      const retryable = isWorthAnotherTry(status);
      throw new BackendError(`${WHO} ${statusWords(status)}`, { retryable, ...answer.again(clock) });
    }
    if (isEventStream(answer)) {
      const checkEvent = (event: { data: string } | "comment") => event !== "comment" && checkJson(event.data);
      return responseOf(answer, rewritten(answer, { all: STREAM_BYTES, one: MIB }, checkEvent));
    }
    const text = await answer.text(WHOLE_BYTES);
    checkJson(text);
    return new Response(text, headOf(answer));
  };
}

function checkJson(text: string): void {
  if (jsonOf(text) === undefined) throw new BackendError(`${WHO} sent an answer that is not JSON`);
}

/** The meaning of A2A's error codes, for the sender of the turn. The messages of these errors are the remote's own. */
const MEANINGS: Record<number, string> = {
  [-32602]: "it does not accept messages in this format",
  [-32603]: "an error of its own",
  [-32001]: "it no longer has the task",
  [-32004]: "it does not support this",
  [-32005]: "it does not accept text",
  [-32006]: "its answer was not valid",
  [-32009]: "it does not support A2A 1.0",
};
const INTERNAL = -32603;

/** Converts an error that the SDK throws to a failure of the backend. */
export function failureOf(thrown: unknown): BackendError {
  for (let one = thrown, depth = 0; one instanceof Error && depth < 4; one = one.cause, depth++) {
    if (one instanceof BackendError) return one;
    const { envelopeCode, errorResponse } = one as {
      envelopeCode?: unknown;
      errorResponse?: { error?: { code?: unknown } };
    };
    const code = envelopeCode ?? errorResponse?.error?.code;
    if (typeof code !== "number") continue;
    const meaning = MEANINGS[code];
    const words = `${WHO} answered with the error ${code}${meaning === undefined ? "" : `: ${meaning}`}`;
    return new BackendError(words, { retryable: code === INTERNAL, cause: quoted(one) });
  }
  return new BackendError(`${WHO} sent an answer that is not A2A`, { cause: quoted(thrown) });
}

/** The message of the remote or of the SDK, for the log only. */
function quoted(thrown: unknown): BackendError {
  return new BackendError(cleanSentence(String(thrown)));
}
