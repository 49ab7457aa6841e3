import type { BackendMessage } from "#backends/backend.ts";

/** What was said before a session began, as whoever began it knows it. */
export type Earlier = { role: "system" | "user" | "assistant"; text: string };

type WithContext = { context: string | undefined };

/**
 * It is kept as the context of the session's message before which it was said. What others send beside a message is an object; a list is
 * always this.
 */
export const earlierAsContext = (earlier: readonly Earlier[]): string | undefined =>
  earlier.length === 0 ? undefined : JSON.stringify(earlier);

export const hasEarlier = ({ context }: WithContext): boolean =>
  context !== undefined && context.charCodeAt(0) === LIST;
const LIST = "[".charCodeAt(0);

/** What was said before a message; nothing for nearly all. */
export const earlierOf = (message: WithContext): readonly BackendMessage[] =>
  hasEarlier(message) ? (JSON.parse(message.context as string) as Earlier[]).map(told) : NOTHING;
const told = ({ role, text }: Earlier): BackendMessage =>
  role === "system" ? { role, text, outside: false, instructions: true } : { role, text, outside: false };
const NOTHING: readonly BackendMessage[] = [];

/** A message without it, as backends are told it. */
export const withoutEarlier = <M extends WithContext>(message: M): M =>
  hasEarlier(message) ? { ...message, context: undefined } : message;
