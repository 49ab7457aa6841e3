import type { EarlierMessage } from "#core/sessions/earlier-messages.ts";
import type { ChatMessage } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";

/** The conversation of a request: the message that starts a turn, and the other messages. */
type Conversation = { text: string; earlier: readonly EarlierMessage[] };

/** The last message of the user starts the turn. Instructions may follow it, as some clients send them. */
export function readConversation(messages: readonly ChatMessage[]): Conversation {
  const last = messages.findLastIndex(({ role }) => role === "user");
  if (last < 0) throw invalid("/messages", "messages has none of role user.");
  const reply = messages.findLastIndex(({ role }) => role === "assistant");
  if (reply > last)
    throw invalid(`/messages/${reply}/role`, `messages[${reply}].role is assistant, and none of role user follows it.`);
  const text = textOf(messages[last] as ChatMessage);
  if (text === "") throw invalid(`/messages/${last}/content`, `messages[${last}].content is empty.`);
  return { text, earlier: messages.flatMap((message, n) => (n === last ? [] : earlierFrom(message))) };
}

function invalid(pointer: string, detail: string): GatewayError {
  return new GatewayError("invalid-request", detail, { errors: [{ pointer, message: detail }] });
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text }) => text).join("\n");
}

function earlierFrom(message: ChatMessage): EarlierMessage[] {
  const text = textOf(message);
  if (text === "") return [];
  const { role } = message;
  return [{ role: role === "developer" ? "system" : role, text }];
}
