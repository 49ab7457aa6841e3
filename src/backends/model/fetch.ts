import type { LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { Agent } from "undici";
import type { Clock } from "#kit/clock.ts";
import type { BackendError } from "#kit/errors.ts";
import { type Answer, ask, MIB } from "#outbound/ask.ts";
import { isEventStream, requestOf, responseOf, rewritten } from "#outbound/fetch.ts";
import type { Sent } from "#outbound/server-events.ts";
import { isObject, jsonOf } from "../json.ts";
import { failureOf, noStream } from "./failures.ts";

const WHO = "the provider";
/** The longest event: the last one of some providers repeats the whole reply. */
export const EVENT_BYTES = 16 * MIB;
export const ANSWER_BYTES = 64 * MIB;

/** The state of one call that its SDK does not keep. */
export type Call = {
  wasSent: boolean;
  hasEvents: boolean;
  /** The stream reported its end. */
  hasEnded: boolean;
  /** The reason of its failure. The SDK may have wrapped it in another error. */
  failure: unknown;
  /** Called for each comment: a sign of life that an SDK does not show. */
  onComment: () => void;
};

/** Asks a model, and yields the parts of its answer as they come. A reader that stops early must abort the signal. */
export type AskModel = (options: Asking, call: Call) => AsyncIterable<readonly (Part | { type: "comment" })[]>;
export type Asking = LanguageModelV3CallOptions & { abortSignal: AbortSignal };
type Part = LanguageModelV3StreamPart;

type Request = Parameters<typeof ask>[2];

/** Sends a request for a stream. An error status, or a body that is not a stream, becomes a BackendError. */
export type Send = (request: Request, signal: AbortSignal | null | undefined, call: Call) => Promise<Answer>;

export function createSend(agent: Agent, clock: Clock): Send {
  return async (request, signal, call) => {
    call.wasSent = true;
    const answer = await ask(agent, WHO, request, signal);
    if (answer.status !== 200 || NO_STREAM.test(typeOf(answer))) throw await refusalOf(answer, clock);
    return answer;
  };
}

/** `fetch` for the SDK of a provider, for one call. */
export function createModelFetch(send: Send, call: Call): typeof fetch {
  return async (input, init) => {
    try {
      const answer = await send(requestOf(input, init), init?.signal, call);
      return responseOf(answer, piecesOf(answer, call));
    } catch (error) {
      call.failure ??= error;
      throw error;
    }
  };
}

const NO_STREAM = /^application\/(problem\+)?json|html|xml/i;

/** The pieces of an answer: complete events if it is a stream of events, else its unchanged bytes. */
async function* piecesOf(answer: Answer, call: Call): AsyncGenerator<Uint8Array, void> {
  const watch = (event: Sent) => {
    if (event === "comment") return call.onComment();
    call.hasEvents = true;
    call.hasEnded ||= event.data === "[DONE]";
  };
  try {
    if (isEventStream(answer)) return yield* rewritten(answer, { all: ANSWER_BYTES, one: EVENT_BYTES }, watch);
    for (let piece = await answer.next(ANSWER_BYTES); piece; piece = await answer.next(ANSWER_BYTES)) {
      call.hasEvents = true;
      yield piece;
    }
  } catch (failure) {
    call.failure ??= failure;
    throw failure;
  } finally {
    answer.discard();
  }
}

function typeOf({ headers }: Answer): string {
  return String(headers["content-type"] ?? "");
}

async function refusalOf(answer: Answer, clock: Clock): Promise<BackendError> {
  const { status } = answer;
  const error = jsonOf((await answer.rest(clock)) ?? "");
  const isError = status !== 200 || (isObject(error) && "error" in error);
  return isError
    ? failureOf({ status, error, retryAfterMs: answer.again(clock).retryAfterMs })
    : noStream(typeOf(answer).includes("html") ? "a page" : "JSON");
}
