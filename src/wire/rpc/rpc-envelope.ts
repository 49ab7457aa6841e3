import { type CallText, idIn } from "./call-text.ts";

/** What a call is wrapped in, once envelopeFault has nothing to say of it. */
export type Envelope = { method: string; params?: object | null };

/** A stranger chooses the names of unknown things: only so much of one is repeated. */
const NAME_LIMIT = 100;

export const shortened = (name: string): string => name.slice(0, NAME_LIMIT);

/** What keeps a value from being a call; undefined when nothing does. */
export const envelopeFault = (message: unknown): string | undefined => {
  if (typeof message !== "object" || message === null || Array.isArray(message)) return "A call is an object.";
  const { jsonrpc, method, params, id } = message as Record<string, unknown>;
  if (jsonrpc !== "2.0") return '`jsonrpc` must be "2.0".';
  if (typeof method !== "string") return "`method` must be a string.";
  if (params !== undefined && typeof params !== "object") return "`params` must be an object.";
  if (id !== undefined && !isId(id)) return "`id` must be a string, a number or null.";
  for (const member in message) {
    if (member !== "jsonrpc" && member !== "method" && member !== "params" && member !== "id")
      return `\`${shortened(member)}\` is no member of a call.`;
  }
  return undefined;
};

const isId = (id: unknown): boolean => typeof id === "string" || typeof id === "number" || id === null;

/**
 * The id of a call as JSON, exactly as it was sent; undefined where there is none that could be echoed. The call is number `index` of
 * a batch, or -1.
 */
export const idOf = (message: unknown, text: CallText, index: number): string | undefined => {
  if (typeof message !== "object" || message === null) return undefined;
  const { id } = message as { id?: unknown };
  if (typeof id === "string") return JSON.stringify(id);
  // A number that ours cannot hold would come back as another, and nobody would find its call.
  if (typeof id === "number") return Number.isSafeInteger(id) ? String(id) : idIn(text.entry(index));
  return id === null ? "null" : undefined;
};
