import { errors } from "#generated/errors.ts";
import type { GatewayError } from "#kit/errors.ts";
import { memberOf, partsOf } from "#kit/json-limits.ts";
import { retryOf } from "#wire/call/problem.ts";

/** A received text that is valid JSON, and the text of each call of a batch in it. */
export class CallText {
  readonly #whole: string;
  /** Computed on the first access, once for all calls: reading the text once for each call would block other callers. */
  #entries: string[] | undefined = undefined;

  constructor(whole: string) {
    this.#whole = whole;
  }

  /** The text of the call that is number `index` of a batch; with -1 the whole. */
  entry(index: number): string {
    if (index < 0) return this.#whole;
    this.#entries ??= partsOf(this.#whole);
    return this.#entries[index] as string;
  }
}

/** The members of a call, once envelopeFault finds nothing wrong with them. */
export type Envelope = { method: string; params?: object | null };

/** The number of characters of an unknown name that are repeated: a stranger chooses these names. */
const NAME_LIMIT = 100;

export function shortened(name: string): string {
  return name.slice(0, NAME_LIMIT);
}

/** The reason that a value is not a call; undefined when it is one. */
export function envelopeFault(message: unknown): string | undefined {
  if (typeof message !== "object" || message === null || Array.isArray(message)) return "A call is an object.";
  const { jsonrpc, method, params, id } = message as Record<string, unknown>;
  if (jsonrpc !== "2.0") return '`jsonrpc` must be "2.0".';
  if (typeof method !== "string") return "`method` must be a string.";
  if (params !== undefined && typeof params !== "object") return "`params` must be an object.";
  if (id !== undefined && !isId(id)) return "`id` must be a string, a number or null.";
  for (const member in message) {
    if (member !== "jsonrpc" && member !== "method" && member !== "params" && member !== "id")
      return `\`${shortened(member)}\` is not a member of a call.`;
  }
  return undefined;
}

function isId(id: unknown): boolean {
  return typeof id === "string" || typeof id === "number" || id === null;
}

/** The id of a call as JSON, exactly as it was sent; undefined where there is none that could be echoed. `index` is its place in a batch, or -1. */
export function idOf(message: unknown, text: CallText, index: number): string | undefined {
  if (typeof message !== "object" || message === null) return undefined;
  const { id } = message as { id?: unknown };
  if (typeof id === "string") return JSON.stringify(id);
  // A number that JavaScript cannot represent would be returned as another number, and the client could not match the answer to its call.
  if (typeof id === "number") return Number.isSafeInteger(id) ? String(id) : idIn(text.entry(index));
  return id === null ? "null" : undefined;
}

/** The text of a call's id. If two members have the same name, the later counts, as it does for JSON.parse. */
function idIn(call: string): string {
  return (
    partsOf(call)
      .map(memberOf)
      .findLast(({ name }) => name === "id")?.value ?? "null"
  );
}

/** The success response; `id` is JSON already. A method without a result has null for one, as the protocol wants a value. */
export function resultText(result: unknown, id: string): string {
  return `{"jsonrpc":"2.0","result":${JSON.stringify(result) ?? "null"},"id":${id}}`;
}

/** The error response; `id` is JSON already. */
export function failureText(error: GatewayError, requestId: string, id: string): string {
  return `{"jsonrpc":"2.0","error":${JSON.stringify(errorOf(error, requestId))},"id":${id}}`;
}

/** The error object. An internal one says nothing of its cause. */
export function errorOf(error: GatewayError, requestId: string) {
  const { name, detail, extra } = error;
  const { code, title } = errors[name];
  const retryAfterMs = retryOf(error);
  return {
    // An error that has no code cannot happen over RPC, so it would be a fault of ours.
    code: code ?? errors.internal.code,
    message: title,
    data: {
      name,
      ...(detail !== undefined && name !== "internal" && { detail }),
      requestId,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(extra.turnId !== undefined && { turnId: extra.turnId }),
      ...(extra.budget && { budget: extra.budget.name, resetsAt: new Date(extra.budget.resetsAt).toISOString() }),
    },
  };
}

/** The answers of a batch, in the order of its calls; undefined when all were notifications. */
export function batchText(answers: readonly (string | undefined)[]): string | undefined {
  const texts = answers.filter((answer) => answer !== undefined);
  return texts.length === 0 ? undefined : `[${texts.join(",")}]`;
}
