import type { LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { Agent, Dispatcher } from "undici";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { isObject, jsonOf } from "../json.ts";
import { type Answer, ask, MIB, streamOf, targetOf } from "../outbound/ask.ts";
import { createDecoder } from "../outbound/server-events.ts";
import { failureOf, noStream, retryAfterIn } from "./failures.ts";

export const WHO = "the provider";
/** The longest event: the last one of some providers repeats the whole reply. */
export const EVENT_BYTES = 16 * MIB;
export const ANSWER_BYTES = 64 * MIB;
/** The size limit, in bytes, of an answer with an error. */
const ERROR_BYTES = 64 * 1024;
const NEWLINE = 10;
const COLON = 58;

/** The state of one call that its SDK does not keep. */
export type Call = {
  wasSent: boolean;
  hasEvents: boolean;
  /** The stream reported its end. */
  hasEnded: boolean;
  /** The reason of its failure. The SDK may have put it into an error of its own. */
  failure: unknown;
  /** Called for each comment: a sign of life that the SDK does not show. */
  onComment: () => void;
};

/** Reads the parts since the last call; undefined at the end. */
export type NextParts = () => Promise<readonly LanguageModelV3StreamPart[] | undefined>;

/** Asks a model. As soon as its answer has begun, returns a function that reads its parts. */
export type AskModel = (options: Asking, call: Call) => Promise<NextParts>;
export type Asking = LanguageModelV3CallOptions & { abortSignal: AbortSignal };

type Sending = { address: string; method: string; headers: Record<string, string>; body: string };

/** Sends a request for a stream. An error status, or a body that is no stream, becomes a BackendError. */
export type Send = (
  sending: Sending,
  signal: AbortSignal | null | undefined,
  call: Call | undefined,
) => Promise<Answer>;

export const createSend =
  (agent: Agent, clock: Clock): Send =>
  async ({ address, method, headers, body }, signal, call) => {
    if (call) call.wasSent = true;
    const request = {
      ...targetOf(address),
      method: method as Dispatcher.HttpMethod,
      headers: { ...headers, "accept-encoding": "identity" },
      body,
    };
    const answer = await ask(agent, WHO, request, signal);
    if ((answer.headers["content-encoding"] ?? "identity") !== "identity") {
      answer.discard();
      throw noStream("something compressed");
    }
    if (answer.status !== 200 || NO_STREAM.test(typeOf(answer))) throw await refusalOf(answer, clock);
    return answer;
  };

/**
 * `fetch` for the SDKs of providers: an answer that is too long or no UTF-8 becomes a BackendError before the SDK sees it. The
 * state of a call is found by its signal, which SDKs hand on as it is.
 */
export const createModelFetch =
  (send: Send, calls: WeakMap<AbortSignal, Call>): typeof fetch =>
  async (input, { headers = {}, body, method = "GET", signal } = {}) => {
    const call = signal ? calls.get(signal) : undefined;
    const address = String(input instanceof Request ? input.url : input);
    const own = headers instanceof Headers ? Object.fromEntries(headers) : (headers as Record<string, string>);
    try {
      const answer = await send({ address, method, headers: own, body: body as string }, signal, call);
      const stream = streamOf(checked(answer, call), answer);
      return new Response(stream, { headers: { "content-type": typeOf(answer) } });
    } catch (error) {
      if (call) call.failure ??= error;
      throw error;
    }
  };

const NO_STREAM = /^application\/(problem\+)?json|html|xml/i;
/** The content types of streams that are no text. */
const BINARY = /^application\/vnd\.|octet-stream/i;

async function* checked(answer: Answer, call: Call | undefined): AsyncGenerator<Uint8Array, void> {
  const isBinary = BINARY.test(typeOf(answer));
  const decode = createDecoder(WHO);
  let line = 0;
  let last: Buffer | undefined;
  try {
    for (let piece = await answer.next(ANSWER_BYTES); piece; piece = await answer.next(ANSWER_BYTES)) {
      if (call) call.hasEvents ||= isBinary || piece.includes("data:");
      if (!isBinary) {
        decode(piece);
        const end = piece.lastIndexOf(NEWLINE);
        line = end === -1 ? line + piece.length : piece.length - end - 1;
        if (line > EVENT_BYTES)
          throw new BackendError(`${WHO} sent an event that is longer than ${EVENT_BYTES / MIB} MiB`);
        if (piece[0] === COLON) call?.onComment();
      }
      last = piece;
      yield piece;
    }
    if (call) call.hasEnded = last?.includes("[DONE]") === true;
  } catch (failure) {
    if (call) call.failure ??= failure;
    throw failure;
  } finally {
    answer.discard();
  }
}

const typeOf = ({ headers }: Answer): string => String(headers["content-type"] ?? "");

const refusalOf = async (answer: Answer, clock: Clock): Promise<BackendError> => {
  const { status, headers } = answer;
  const error = jsonOf(await answer.text(ERROR_BYTES).catch(() => ""));
  const isError = status !== 200 || (isObject(error) && "error" in error);
  return isError
    ? failureOf({ status, error, retryAfterMs: retryAfterIn(headers, clock.now()) })
    : noStream(typeOf(answer).includes("html") ? "a page" : "JSON");
};
