import type { BackendMessage, BackendTurn } from "../backend.ts";
import { conversationText } from "../conversation.ts";
import { FENCE_RULE, fence } from "../fence.ts";
import { summaryDocument } from "../turn-document.ts";

/** What an agent is told in words: it takes a prompt, and nothing beside it. `history` is what it does not know yet. */
export const promptFor = (
  { instructions, skills, message }: Pick<BackendTurn, "instructions" | "skills" | "message">,
  { isNew, history }: { isNew: boolean; history: readonly BackendMessage[] },
): string => {
  const parts: string[] = [];
  if (isNew && instructions !== undefined) parts.push(instructions);
  const isOutside = message.outside || message.context !== undefined || history.some(({ outside }) => outside);
  if (isOutside) parts.push(FENCE_RULE);
  if (history.length > 0) parts.push(conversationText(history, { isAll: isNew }));
  for (const { skillId, body } of skills) parts.push(`Use this skill, ${skillId}:\n\n${body}`);
  parts.push(message.outside ? fence("The message.", message.text) : message.text);
  if (message.context !== undefined) parts.push(fence("What came with the message, as JSON.", message.context));
  return parts.join("\n\n");
};

export const summaryPrompt = (messages: readonly BackendMessage[]): string => {
  const { message } = summaryDocument("", messages);
  return promptFor(
    { instructions: undefined, skills: [], message: { text: message.text, outside: false, context: undefined } },
    { isNew: true, history: messages },
  );
};

/**
 * What an agent has missed that was asked `text` last: a turn that another gateway ran, or one that never reached it. Nothing where that
 * message is in the history no more.
 */
export const missedSince = (text: string, history: readonly BackendMessage[]): readonly BackendMessage[] => {
  const at = history.findLastIndex((message) => message.role !== "assistant" && message.text === text);
  if (at < 0) return [];
  const since = history.slice(at + 1);
  return since[0]?.role === "assistant" ? since.slice(1) : since;
};
