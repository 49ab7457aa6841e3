import type { BackendMessage } from "./backend.ts";
import { fence } from "./fence.ts";
import { newest } from "./turn-document.ts";

/** A conversation for who takes a prompt and nothing beside it: a line of JSON each, so that none can look like another, or like its end. */
export const conversationText = (messages: readonly BackendMessage[], { isAll }: { isAll: boolean }): string => {
  const { history, historyOmitted } = newest(messages);
  const lines = history.map(({ role, text, outside }) =>
    outside ? fence(`Then came a message (${role}).`, text) : JSON.stringify({ role, text }),
  );
  const head = isAll ? "The conversation before this message" : "What was said since you were asked last";
  const left = historyOmitted > 0 ? `, but for the first ${historyOmitted} messages` : "";
  return `${head}, oldest first${left}; you are the assistant:\n${lines.join("\n")}`;
};
