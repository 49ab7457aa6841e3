// Copied by "npm run generate" from scripts/generate/runtime/typescript/error.ts; do not edit.
import { type ErrorName, retriedNames } from "./error-names.ts";
import type { Fault } from "./rest-types.ts";
import { BrokenAnswer, isObject, jsonOf, stringOr } from "./body.ts";

/** The reasons for a failure before the gateway answers, or with an answer that is not the gateway's. */
export type ClientErrorName =
  | "bad-signature"
  | "closed"
  | "connection-failed"
  | "no-token"
  | "not-a-gateway"
  | "timeout";

interface Facts {
  operation?: string | undefined;
  status?: number | undefined;
  code?: number | undefined;
  detail?: string | undefined;
  requestId?: string | undefined;
  turnId?: string | undefined;
  retryAfterMs?: number | undefined;
  faults?: readonly Fault[] | undefined;
  cause?: unknown;
}

/** A call failed. Decide by `name`. A name that this client does not know yet comes from a newer gateway. */
export class GatewayError extends Error {
  /** A name of the gateway's error table, such as `session-busy`, or a name of this client. */
  override readonly name: ErrorName | ClientErrorName | (string & {});
  /** The call, such as `chat.send`. */
  readonly operation: string | undefined;
  /** The HTTP status. A call over a WebSocket has none. */
  readonly status: number | undefined;
  /** The JSON-RPC error code of an RPC call. */
  readonly code: number | undefined;
  /** The short text of the error, always the same. */
  readonly title: string;
  /** The details of this error. */
  readonly detail: string | undefined;
  /** The id of the call in the gateway's log and flight recorder. */
  readonly requestId: string | undefined;
  /** The turn that the error is about. */
  readonly turnId: string | undefined;
  /** When the same call may succeed. */
  readonly retryAfterMs: number | undefined;
  /** Each fault of a request that does not match the contract. */
  readonly faults: readonly Fault[];
  /** The idempotency key of the call. A repeat with this key starts nothing twice. */
  idempotencyKey: string | undefined;

  /** Whether a thrown value is an error with one of these names. Narrows the type of the value and of its `name`. */
  static is<Name extends ErrorName | ClientErrorName | (string & {})>(
    error: unknown,
    ...names: [Name, ...Name[]]
  ): error is GatewayError & { readonly name: Name } {
    return error instanceof GatewayError && (names as string[]).includes(error.name);
  }

  constructor(name: string, title: string, facts: Facts = {}) {
    const { operation, detail, cause } = facts;
    super(`${operation === undefined ? "" : `${operation}: `}${detail ?? title}`, cause === undefined ? {} : { cause });
    this.name = name;
    this.title = title;
    this.operation = operation;
    this.status = facts.status;
    this.code = facts.code;
    this.detail = detail;
    this.requestId = facts.requestId;
    this.turnId = facts.turnId;
    this.retryAfterMs = facts.retryAfterMs;
    this.faults = facts.faults ?? [];
  }
}

/** @deprecated Use `GatewayError`. */
export const AgentGatewayError = GatewayError;
/** @deprecated Use `GatewayError`. */
export type AgentGatewayError = GatewayError;

/** The `error` of a JSON-RPC response. */
export interface RpcErrorObject {
  code: number;
  message: string;
  data?: { name?: string; detail?: string; requestId?: string; turnId?: string; retryAfterMs?: number };
}

export function rpcError(
  { code, message, data }: RpcErrorObject,
  operation: string | undefined,
  status?: number,
): GatewayError {
  const { name, detail, requestId, turnId, retryAfterMs } = (isObject(data) ? data : {}) as Record<string, unknown>;
  return new GatewayError(stringOr(name, "unknown"), stringOr(message, "Error"), {
    detail: stringOr(detail, undefined),
    requestId: stringOr(requestId, undefined),
    turnId: stringOr(turnId, undefined),
    retryAfterMs: waitOf(retryAfterMs),
    code,
    status,
    operation,
  });
}

/** The error for a response that is not a success. */
export async function responseError(response: Response, operation: string, token?: string): Promise<GatewayError> {
  const { status, headers } = response;
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) return redirected(response, operation);
  const requestId = headers.get("x-request-id") ?? undefined;
  const retryAfterMs = retryAfterOf(headers);
  if (!headers.get("content-type")?.startsWith("application/problem+json")) {
    await response.body?.cancel();
    const detail = `${response.url || "The server"} answered ${status} with ${typeOf(response)} in place of the gateway's own error. Is a proxy in between?`;
    return new GatewayError(`http-${status}`, `HTTP ${status}`, {
      operation,
      status,
      requestId,
      retryAfterMs,
      detail,
    });
  }
  const body = await jsonOf(response);
  const problem = isObject(body) ? body : {};
  // The gateway's detail is the same if the request has no token.
  const refused = status === 401 && token !== undefined ? `The given ${token} was refused. ` : "";
  return new GatewayError(
    stringOr(problem.type, `http-${status}`).split("#").at(-1) as string,
    stringOr(problem.title, `HTTP ${status}`),
    {
      operation,
      status,
      detail: `${refused}${stringOr(problem.detail, "")}` || undefined,
      requestId: stringOr(problem.request_id, requestId),
      turnId: stringOr(problem.turn_id, undefined),
      retryAfterMs: waitOf(problem.retry_after_ms) ?? retryAfterMs,
      faults: (Array.isArray(problem.errors) ? problem.errors.filter(isObject) : []) as unknown[] as Fault[],
    },
  );
}

function waitOf(ms: unknown): number | undefined {
  return typeof ms === "number" ? Math.max(0, ms) : undefined;
}

/** The error for an answer of an unexpected content type. */
export function notAGateway(response: Response, operation: string, due = "JSON"): GatewayError {
  return answeredOther(response, operation, typeOf(response), due);
}

/** The fields of a reply. Throws if it is not an object, or has no list `items`. */
export function fieldsOf(
  value: unknown,
  items: string | undefined,
  response: Response | undefined,
  operation: string,
): Record<string, unknown> {
  if (!isObject(value)) {
    const given = value == null ? "nothing" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
    throw answeredOther(response, operation, given, "a gateway's reply");
  }
  if (items !== undefined && !Array.isArray(value[items]))
    throw otherAnswer(operation, `The answer has no list \`${items}\`.`);
  return value;
}

export function otherAnswer(operation: string | undefined, detail: string): GatewayError {
  return new GatewayError("not-a-gateway", "Not a gateway's answer", {
    operation,
    detail: `${detail} Is this a gateway?`,
  });
}

function answeredOther(response: Response | undefined, operation: string, given: string, due: string): GatewayError {
  return new GatewayError("not-a-gateway", "Not a gateway's answer", {
    operation,
    status: response?.status,
    detail: `${response?.url || "The address"} answered ${given} in place of ${due}. Is this a gateway?`,
  });
}

/** A redirect is not followed: the token and the body would go to an address that the caller has not named. */
async function redirected(response: Response, operation: string): Promise<GatewayError> {
  await response.body?.cancel();
  const location = response.headers.get("location") ?? "";
  const target = URL.canParse(location, response.url || undefined)
    ? new URL(location, response.url || undefined).href
    : "another address";
  return new GatewayError("not-a-gateway", "Not a gateway's answer", {
    operation,
    status: response.status,
    detail: `${response.url || "The address"} redirects to ${target}. Nothing was sent there. If that is the gateway, use its address.`,
  });
}

function typeOf({ headers }: Response): string {
  return headers.get("content-type")?.split(";")[0] ?? "no content";
}

/** `Retry-After` in milliseconds, from seconds or a date. */
function retryAfterOf(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Codes of connections that were never opened: nothing was sent. */
const UNSENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

/** There was no answer: `fetch` or a WebSocket failed. */
export function connectionError(cause: unknown, operation: string | undefined, url: string): GatewayError {
  if (cause instanceof GatewayError) return cause;
  const { host } = new URL(url);
  const { code, message } = reasonOf(cause);
  const detail =
    cause instanceof BrokenAnswer
      ? `The answer from ${host} is broken: ${message}.`
      : code === "ECONNREFUSED"
        ? `Nothing answers at ${host} (ECONNREFUSED). Is the gateway running, and is the address right?`
        : code === "ENOTFOUND" || code === "EAI_AGAIN"
          ? `There is no host ${new URL(url).hostname} (${code}). Is the address right?`
          : `No answer came from ${host}: ${message.replace(/\.$/, "")}${code === undefined || message.includes(code) ? "" : ` (${code})`}.`;
  return new GatewayError("connection-failed", "Connection failed", { operation, detail, cause });
}

/** `fetch` only reports a failure; its cause has the reason. */
function reasonOf(error: unknown): { code?: string | undefined; message: string } {
  if (!(error instanceof Error)) return { message: String(error) };
  const inner = error.cause ?? (error as { errors?: unknown[] }).errors?.[0];
  if (inner instanceof Error) return reasonOf(inner);
  const code = (error as { code?: unknown }).code;
  return { code: typeof code === "string" ? code : undefined, message: error.message || String(code ?? error.name) };
}

/** Whether the same call may succeed. `isRepeatable`: a second call has no further effect. */
export function isWorthRetrying(error: GatewayError, isRepeatable: boolean): boolean {
  const { name, status = 0, turnId, cause } = error;
  if (name === "connection-failed") return isRepeatable || UNSENT.includes(reasonOf(cause).code ?? "");
  if ((retriedNames as readonly string[]).includes(name)) return true;
  // The turn has ended: a repeat would only report its end again.
  if (turnId !== undefined) return false;
  if (status === 408 || status === 429 || status === 503) return true;
  return isRepeatable && status >= 500;
}
