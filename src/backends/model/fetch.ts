import type { Agent, Dispatcher } from "undici";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { type Answer, ask, type Body, MIB, streamOf, targetOf, wholeOf } from "../outbound/ask.ts";
import { createDecoder } from "../outbound/server-events.ts";
import { brokeOff, failureOf, jsonOf, noStream, retryAfterIn } from "./failures.ts";

const WHO = "the provider";
/** The last event of some providers repeats the whole reply. */
const LINE_BYTES = 16 * MIB;
const ANSWER_BYTES = 64 * MIB;
/** Of an answer that is an error. */
const ERROR_BYTES = 64 * 1024;
const NEWLINE = 10;
const COLON = 58;

/** What is known of one call beside what its SDK makes of it. */
export type Call = {
  wasSent: boolean;
  hasEvents: boolean;
  /** The stream said that it is at its end. */
  hasEnded: boolean;
  /** Why it failed. The SDK may have put it into an error of its own. */
  failure: unknown;
  /** A comment came: a sign of life that the SDK does not show. */
  onComment: () => void;
};

/**
 * `fetch` for the SDKs of providers: an error's status, a body that is no stream, one that is too long or no UTF-8 is a BackendError before
 * the SDK sees it. A call finds what belongs to it by its signal, which SDKs hand on as it is.
 */
export const createModelFetch = (agent: Agent, clock: Clock, calls: WeakMap<AbortSignal, Call>): typeof fetch => {
  const answerTo = async (address: string | URL, init: RequestInit, call: Call | undefined): Promise<Response> => {
    const { headers = {}, body, method = "GET", signal } = init;
    if (call) call.wasSent = true;
    const own = headers instanceof Headers ? Object.fromEntries(headers) : (headers as Record<string, string>);
    const request = {
      ...targetOf(address),
      method: method as Dispatcher.HttpMethod,
      headers: { ...own, "accept-encoding": "identity" },
      body: body as string,
    };
    const answer = await ask(agent, WHO, request, signal);
    const type = String(answer.headers["content-type"] ?? "");
    if ((answer.headers["content-encoding"] ?? "identity") !== "identity") {
      answer.body.discard();
      throw noStream("something compressed");
    }
    if (answer.status !== 200 || NO_STREAM.test(type)) throw await refusalOf(answer, type, clock);
    const stream = streamOf(checked(answer.body, BINARY.test(type), call), answer.body);
    return new Response(stream, { headers: { "content-type": type } });
  };
  return async (input, init = {}) => {
    const call = init.signal ? calls.get(init.signal) : undefined;
    try {
      return await answerTo(input instanceof Request ? input.url : input, init, call);
    } catch (error) {
      if (call) call.failure ??= error;
      throw error;
    }
  };
};

const NO_STREAM = /^application\/(problem\+)?json|html|xml/i;
/** Of those that stream something else than text. */
const BINARY = /^application\/vnd\.|octet-stream/i;

async function* checked(body: Body, isBinary: boolean, call: Call | undefined): AsyncGenerator<Uint8Array, void> {
  const decode = createDecoder(WHO);
  let bytes = 0;
  let line = 0;
  let last: Buffer | undefined;
  try {
    for (let piece = await body.next(); piece; piece = await body.next()) {
      bytes += piece.length;
      if (bytes > ANSWER_BYTES) throw new BackendError(`${WHO} sent more than ${ANSWER_BYTES / MIB} MiB`);
      if (call) call.hasEvents ||= isBinary || piece.includes("data:");
      if (!isBinary) {
        decode(piece);
        const end = piece.lastIndexOf(NEWLINE);
        line = end === -1 ? line + piece.length : piece.length - end - 1;
        if (line > LINE_BYTES)
          throw new BackendError(`${WHO} sent an event that is longer than ${LINE_BYTES / MIB} MiB`);
        if (piece[0] === COLON) call?.onComment();
      }
      last = piece;
      yield piece;
    }
    if (call) call.hasEnded = last?.includes("[DONE]") === true;
  } catch (error) {
    const failure = error instanceof BackendError ? error : brokeOff(error);
    if (call) call.failure ??= failure;
    throw failure;
  } finally {
    body.discard();
  }
}

const refusalOf = async ({ status, headers, body }: Answer, type: string, clock: Clock) => {
  const error = jsonOf(await wholeOf(WHO, body, ERROR_BYTES).catch(() => ""));
  const isError = status !== 200 || (typeof error === "object" && error !== null && "error" in error);
  return isError
    ? failureOf({ status, error, retryAfterMs: retryAfterIn(headers, clock.now()) })
    : noStream(type.includes("html") ? "a page" : "JSON");
};
