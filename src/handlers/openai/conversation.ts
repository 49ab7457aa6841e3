import { type Earlier, earlierAsContext } from "#core/sessions/history.ts";
import type { ChatMessage } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";

/** A request's conversation: the message that starts a turn, and the earlier messages. */
export type Conversation = { text: string; earlier: readonly Earlier[] };

type Messages = readonly ChatMessage[];

/** The last message of the user, and all others before it: instructions that stand behind it, too, as some clients put them there. */
export const conversationOf = (messages: Messages): Conversation => {
  const last = messages.findLastIndex(({ role }) => role === "user");
  if (last < 0) throw invalid("/messages", "messages has none of role user.");
  const behind = messages.findLastIndex(({ role }) => role === "assistant");
  if (behind > last)
    throw invalid(
      `/messages/${behind}/role`,
      `messages[${behind}].role is assistant, and none of role user follows it.`,
    );
  const text = textOf(messages[last] as ChatMessage);
  if (text === "") throw invalid(`/messages/${last}/content`, `messages[${last}].content is empty.`);
  return { text, earlier: messages.flatMap((message, n) => (n === last ? [] : earlierFrom(message))) };
};

const invalid = (pointer: string, detail: string): GatewayError =>
  new GatewayError("invalid-request", detail, { errors: [{ pointer, message: detail }] });

const textOf = ({ content }: ChatMessage): string => {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text }) => text).join("\n");
};

const earlierFrom = (message: ChatMessage): Earlier[] => {
  const text = textOf(message);
  if (text === "") return [];
  const { role } = message;
  return [{ role: role === "developer" ? "system" : role, text }];
};

/** The most text of earlier messages that begins a session that goes on: it counts for no compaction. */
const BEGINNING_CHARACTERS = 64 * 1024;

/** The earlier messages that begin such a session: the instructions, and the newest of the rest that fit. */
export const beginningOf = (earlier: readonly Earlier[]): string | undefined => {
  const isTold = ({ role }: Earlier): boolean => role === "system";
  const wanted = [...earlier.filter(isTold), ...earlier.filter((one) => !isTold(one)).reverse()];
  let left = BEGINNING_CHARACTERS;
  const tooMuch = wanted.findIndex(({ text }) => {
    left -= text.length;
    return left < 0;
  });
  const kept = new Set(tooMuch < 0 ? wanted : wanted.slice(0, tooMuch));
  return earlierAsContext(earlier.filter((one) => kept.has(one)));
};
