import { type ErrorName, errors } from "#generated/errors.ts";
import { methods } from "#generated/methods.ts";
import type { Validate } from "#generated/validators/validate.ts";
import { privacyFaults } from "./contract.ts";
import { notePair } from "./pairs.ts";
import { resultShape, rpcErrorShape } from "./shapes.ts";

export type RpcFailure = {
  code: number;
  message: string;
  data: { name: ErrorName; detail?: string; requestId?: string; retryAfterMs?: number; turnId?: string };
};
export type RpcAnswer = { jsonrpc: "2.0"; id: unknown; result?: unknown; error?: RpcFailure };

/** The errors of a method that the contract does not list. */
const OF_OTHERS: readonly ErrorName[] = [
  "unauthenticated",
  "tls-required",
  "method-not-found",
  "invalid-params",
  "invalid-request",
  "forbidden",
  "rate-limited",
  "internal",
];
const WITH_RESULT = new Set(["jsonrpc", "id", "result"]);
const WITH_ERROR = new Set(["jsonrpc", "id", "error"]);

/** All parts of an answer that do not match JSON-RPC and the contract. `method` is the called method, if there was one. */
function answerFaults(answer: unknown, method?: string): string[] {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) return ["the answer is no object"];
  const { jsonrpc, id, result, error } = answer as RpcAnswer;
  const found: string[] = [];
  if (jsonrpc !== "2.0") found.push(`jsonrpc is ${jsonrpc}`);
  if (id === undefined || (id !== null && typeof id !== "string" && typeof id !== "number")) found.push(`id is ${id}`);
  if ((result === undefined) === (error === undefined)) found.push("it has not one of result and error");
  const members = error === undefined ? WITH_RESULT : WITH_ERROR;
  for (const member of Object.keys(answer)) if (!members.has(member)) found.push(`it has a member ${member}`);
  if (error !== undefined) found.push(...errorFaults(error, method));
  else if (method !== undefined && rowOf(method))
    found.push(...shapeFaults(resultShape(method) as Validate, result, "result"));
  if (method !== undefined && rowOf(method) && found.length === 0) notePair(method, error?.data.name ?? "result");
  return found;
}

function rowOf(method: string | undefined): { errors: readonly ErrorName[] } | undefined {
  return method !== undefined && Object.hasOwn(methods, method) ? methods[method as keyof typeof methods] : undefined;
}

function shapeFaults(validate: Validate, value: unknown, what: string): string[] {
  return validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${what}${instancePath} ${message}`);
}

function errorFaults(error: RpcFailure, method: string | undefined): string[] {
  const found = shapeFaults(rpcErrorShape, error, "error");
  const { name, detail, requestId, retryAfterMs } = error.data ?? {};
  const row = errors[name];
  if (!row) return [...found, `${name} is no row of the error table`];
  if (row.code !== error.code) found.push(`${name} has the code ${row.code}, not ${error.code}`);
  if (row.title !== error.message) found.push(`${name} has the title ${row.title}, not ${error.message}`);
  if (!/^req_[0-9A-HJKMNP-TV-Z]{26}$/.test(requestId ?? "")) found.push(`requestId is ${requestId}`);
  if (name === "internal" && detail !== undefined) found.push("internal reveals its cause");
  if (row.retry && retryAfterMs === undefined) found.push(`${name} comes without retryAfterMs`);
  const known = rowOf(method);
  if (known && !known.errors.includes(name)) found.push(`${name} is not among the x-errors of ${method}`);
  if (!known && method !== undefined && !OF_OTHERS.includes(name)) found.push(`${name} is no answer to ${method}`);
  return found;
}

/** Validates an answer, or the answers of a batch. `sent` is the text of the request, if known. */
export function textFaults(text: string, sent?: string): string[] {
  const answer = tryParse(text);
  if (answer === undefined) return [`it is not JSON: ${text.slice(0, 200)}`];
  const call = sent === undefined ? undefined : tryParse(sent);
  if (!Array.isArray(answer)) return answerFaults(answer, methodOf(call, answer));
  if (answer.length === 0) return ["a batch of answers is empty"];
  if (!Array.isArray(call)) return answer.flatMap((one) => answerFaults(one));
  const calls = call.filter(isAnswered);
  if (calls.length !== answer.length) return [`${answer.length} answers to ${calls.length} calls`];
  return answer.flatMap((one, n) => answerFaults(one, methodOf(calls[n], one)).map((fault) => `answer ${n}: ${fault}`));
}

/** A valid notification is not answered. */
function isAnswered(call: unknown): boolean {
  return (call as { id?: unknown } | null)?.id !== undefined || !isCall(call);
}

export function isAnsweredText(sent: string): boolean {
  const call = tryParse(sent);
  if (!Array.isArray(call)) return isAnswered(call);
  return call.length === 0 || call.some(isAnswered);
}

function isCall(call: unknown): boolean {
  if (typeof call !== "object" || call === null) return false;
  const { jsonrpc, method, params, id = null, ...others } = call as Record<string, unknown>;
  const isId = id === null || typeof id === "string" || typeof id === "number";
  const isWhole = isId && (params === undefined || typeof params === "object") && Object.keys(others).length === 0;
  return jsonrpc === "2.0" && typeof method === "string" && isWhole;
}

/** The called method; undefined if the call was not read, so that its id is not echoed. */
function methodOf(call: unknown, answer: unknown): string | undefined {
  const { method, id } = (call ?? {}) as { method?: string; id?: unknown };
  const wasRead = isCall(call) && (id === null || (answer as RpcAnswer | null)?.id !== null);
  return wasRead ? method : undefined;
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function rpcReplyFaults(status: number, headers: Headers, body: string, isHead: boolean): string[] {
  const found: string[] = privacyFaults(headers);
  const type = headers.get("content-type");
  const requestId = headers.get("x-request-id") ?? "";
  if (status === 204) return body === "" && type === null ? found : [...found, "204 comes with a body"];
  if (type !== "application/json") found.push(`the content-type is ${type}`);
  const length = headers.get("content-length");
  if (isHead) return body === "" ? found : [...found, "HEAD was answered with a body"];
  if (length !== null && Number(length) !== Buffer.byteLength(body)) found.push(`content-length is ${length}`);
  found.push(...textFaults(body));
  if (found.length > 0) return found;
  const answers = [JSON.parse(body)].flat() as RpcAnswer[];
  for (const { error } of answers) if (error && error.data.requestId !== requestId) found.push("requestId is another");
  if (status !== 200) found.push(...refusalFaults(status, headers, answers[0]?.error));
  else if (answers.some(({ error }) => error?.code === -32000)) found.push("-32000 comes with 200");
  return found;
}

function refusalFaults(status: number, headers: Headers, error: RpcFailure | undefined): string[] {
  if (error === undefined) return [`${status} comes with a result`];
  const { name, retryAfterMs } = error.data;
  const found: string[] = [];
  if (errors[name].status !== status) found.push(`${name} has the status ${errors[name].status}`);
  if ((name === "unauthenticated") !== headers.has("www-authenticate")) found.push("WWW-Authenticate goes with 401");
  if ((name === "method-not-allowed") !== headers.has("allow")) found.push("Allow goes with 405");
  const wait = headers.get("retry-after");
  if ((retryAfterMs === undefined) !== (wait === null)) found.push("Retry-After and retryAfterMs go together");
  if (retryAfterMs !== undefined && Number(wait) !== Math.max(1, Math.ceil(retryAfterMs / 1000)))
    found.push(`Retry-After is ${wait}, retryAfterMs ${retryAfterMs}`);
  return found;
}
