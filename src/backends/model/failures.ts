import { cleanSentence } from "#kit/clean-words.ts";
import { BackendError } from "#kit/errors.ts";
import { statusWords } from "#outbound/words.ts";
import { isObject, jsonOf } from "../json.ts";

/**
 * The request itself was refused: no other model is asked for the same. After any other failure another model is asked, if no
 * text was sent yet.
 */
export class RequestRefused extends BackendError {}

/** The details of a failure that a provider reported: by the answer's status, or inside a stream that started successfully. */
type ModelFailure = { status: number | undefined; error: unknown; retryAfterMs: number | undefined };

type Words = { codes: string; message: string; status: number | undefined; retryAfterMs: number | undefined };

const TOO_LONG =
  /context.?length|context window|prompt is too long|too many (input )?tokens|input token count|request_too_large|maximum context|exceeds? .{0,40}tokens/;
const NO_CREDIT = /insufficient_quota|billing|credit balance|payment.?required|quota_exceeded_lifetime/;
const FILTERED = /content_filter|content_policy|safety|prohibited_content|responsibleai/;
const NO_KEY =
  /invalid_api_key|authentication|permission_error|permission_denied|unauthenticated|api_key_invalid|api key not valid/;
const NO_MODEL = /model_not_found|not_found|model .{0,200}(not found|does not exist)/;
/** Some servers answer this with a status of 200. */
const ELSEWHERE = /unexpected endpoint/;
const TOO_FAST = /rate_limit|resource_exhausted|too_many_requests/;
const BUSY = /overloaded|unavailable|api_error|server_error|internal|timeout|deadline_exceeded|bad gateway/;

/** A provider's failure in our text. The provider's own message is the error's cause, for the log only, without anything that looks like a key. */
export function failureOf({ status: answered, error, retryAfterMs: asked }: ModelFailure): BackendError {
  const { codes, message, status = answered, retryAfterMs = asked } = readError(error);
  const said = `${codes} ${message}`.toLowerCase();
  const cause = quoted(`${answered ?? "in its stream"}: ${codes} ${message}`);
  const refused = (words: string) => new RequestRefused(words, { cause });
  const lasting = (words: string) => new BackendError(words, { cause });
  const again = (words: string) =>
    new BackendError(words, { retryable: true, cause, ...(retryAfterMs !== undefined && { retryAfterMs }) });

  if (NO_CREDIT.test(said) || status === 402)
    return lasting("the gateway's account with the provider has no credit left");
  if (status === 401 || status === 403 || (NO_KEY.test(said) && status !== 404 && (status ?? 400) < 429))
    return lasting("the provider refused its API key");
  if (status === 413 || ((status ?? 400) < 429 && TOO_LONG.test(said)))
    return refused("the conversation is too long for the model");
  if ((status ?? 400) < 429 && FILTERED.test(said)) return refused(FILTER_WORDS);
  if (status === 405 || (status === 404 && !said.includes("model")) || ELSEWHERE.test(said)) return lasting(NO_PLACE);
  if (status === 404 || (NO_MODEL.test(said) && (status ?? 400) < 429))
    return lasting("the provider does not have the model, or the account may not use it");
  if (status === 429 || (status === undefined && TOO_FAST.test(said)))
    return again("the provider limits the gateway's requests");
  if ((status !== undefined && (status >= 500 || status === 408 || status === 409)) || BUSY.test(said))
    return again("the provider is overloaded or failing");
  if (status !== undefined && status >= 300 && status < 400) return lasting(`the provider ${statusWords(status)}`);
  if (status === undefined || status === 200) return again("the provider ended its answer with an error");
  return refused(`the provider refused the request (${status})`);
}

/** A provider without the model says so: any other answer of this kind comes from a server without such a path. */
const NO_PLACE = "the provider has nothing at its address, or not the model: check its `baseUrl` and the model's name";

export const FILTER_WORDS = "the provider's content filter refused this";

export type Again = Pick<BackendError, "retryable" | "retryAfterMs">;

/** The failure of a turn after the last of the tried models. The last argument says if, and when, a retry is useful. */
export function noneLeft(last: BackendError, tried: number, { retryable, retryAfterMs }: Again): BackendError {
  if (tried === 1 && retryable === last.retryable) return last;
  const { message, isLate, model } = last;
  const words =
    tried === 1 ? message : `none of the ${tried} models that were tried answered; the last, ${model}: ${message}`;
  const after = retryAfterMs === undefined ? {} : { retryAfterMs };
  return Object.assign(new BackendError(words, { retryable, isLate, cause: last, ...after }), { model });
}

/** An event in no form of this provider. */
export class StrangeEvent extends Error {
  readonly value: unknown;

  constructor(value: unknown) {
    super("an event in an unknown format");
    this.value = value;
  }
}

/** Errors of the SDK for data in an unknown form, or for no data in a known form. */
const STRANGE = new Set(["AI_TypeValidationError", "AI_JSONParseError", "AI_InvalidResponseDataError"]);

/** A call of a model, as far as its failure depends on it. `failure` is its own reason, which the SDK may have put into an error. */
type FailedCall = { failure: unknown; wasSent: boolean; hasEvents: boolean };

/** The failure of a call for a thrown value. `isKnown`: a part of the answer had the format of this provider type. */
export function failureOfCall(
  thrown: unknown,
  { failure = thrown, wasSent, hasEvents }: FailedCall,
  isKnown: boolean,
  type: string,
): unknown {
  if (failure !== thrown || thrown instanceof BackendError) return failure;
  const { isStrange, value } = contentOf(thrown);
  const hasError = isObject(value) && "error" in value;
  if (isStrange && hasEvents && !isKnown && !hasError) return otherForm(type);
  const { name, message } = thrown instanceof Error ? thrown : { name: "", message: "" };
  // Its stream ended without saying so.
  if (name === "AI_InvalidResponseDataError") return brokeOff(quoted(`${name}: ${message}`));
  if (!wasSent && (name === "AI_InvalidArgumentError" || name === "AI_TypeValidationError"))
    return new BackendError("the provider does not accept the model's `options`", { cause: thrown });
  // A provider reports its own failure, perhaps in a format that its SDK does not know.
  const isReported = name === "" || name === "AI_APICallError" ? value !== undefined : hasError;
  if (isReported) return failureOf({ status: undefined, error: value, retryAfterMs: undefined });
  return new BackendError("the provider's answer could not be read", { cause: quoted(`${name}: ${message}`) });
}

/** The error or event in place of an answer. SDKs put the stream's first event into an error as if a call had failed. */
function contentOf(error: unknown): { isStrange: boolean; value: unknown } {
  if (!(error instanceof Error)) return { isStrange: false, value: error };
  const { responseBody } = error as { responseBody?: unknown };
  const body = typeof responseBody === "string" ? jsonOf(responseBody) : undefined;
  const strange = [error, error.cause, body].find(
    (one) => one instanceof StrangeEvent || STRANGE.has(String(Object(one).name)),
  );
  return strange ? { isStrange: true, value: Object(strange).value } : { isStrange: false, value: body };
}

/** The failure for an answer in no form of this provider type. */
export function otherForm(type: string): BackendError {
  return new BackendError(
    `the answer is not from a provider of the type ${type}: check the provider's \`type\` and \`baseUrl\``,
  );
}

/** The failure for an answer that this provider should not send. */
export function noStream(what: string): BackendError {
  return new BackendError(`the provider sent ${what} instead of a stream of events`);
}

export function brokeOff(cause?: unknown): BackendError {
  return new BackendError("the provider ended its answer early", { retryable: true, cause });
}

/** Providers agree on little more than an object somewhere with a message in it. */
function readError(error: unknown): Words {
  const outer = Array.isArray(error) ? error[0] : error;
  const inner = isObject(outer) && !isEmpty(outer.error) ? outer.error : outer;
  if (!isObject(inner))
    return { codes: "", message: typeof inner === "string" ? inner : "", status: undefined, retryAfterMs: undefined };
  const { code, type, status, message, detail, details } = inner;
  const codes = [code, type, status, ...reasonsOf(details)].filter((one) => typeof one === "string").join(" ");
  const number = [code, status].map(Number).find((one) => Number.isInteger(one) && one >= 400 && one < 600);
  const words = [message, detail].find((one) => typeof one === "string") as string | undefined;
  return { codes, message: words ?? "", status: number, retryAfterMs: retryDelayOf(details) };
}

function reasonsOf(details: unknown): unknown[] {
  return Array.isArray(details) ? details.filter(isObject).map(({ reason }) => reason) : [];
}

/** Google's own form of Retry-After. */
function retryDelayOf(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined;
  const delay = details.filter(isObject).find(({ retryDelay }) => typeof retryDelay === "string")?.retryDelay;
  const seconds = /^(\d{1,6}(?:\.\d+)?)s$/.exec(String(delay))?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}

/** The message of a provider, or of an SDK that quotes it, for the log only. */
function quoted(words: string): BackendError {
  const isKey = (word: string) => !/^[a-z_]+$/.test(word);
  return new BackendError(
    cleanSentence(words).replace(/[A-Za-z0-9_-]{16,}|sk-[\w-]+/g, (word) => (isKey(word) ? "…" : word)),
  );
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}
