import type { BackendMessage, BackendTurn } from "./backend.ts";
import { FENCE_RULE, fence } from "./fence.ts";
import { newest } from "./turn-document.ts";

type PromptParts = Pick<BackendTurn, "instructions" | "skills" | "message">;

/**
 * The texts of a turn for an agent that accepts only text. `history` is the part of the conversation that the agent does not know
 * yet; a new agent knows nothing.
 */
export function textsFor(
  { instructions, skills, message: { text, outside, context } }: PromptParts,
  history: readonly BackendMessage[],
  { isNew = true } = {},
): string[] {
  const said = history.filter((one) => !one.instructions);
  const isFenced = outside || context !== undefined || said.some((one) => one.outside);
  return [
    ...(isNew && instructions !== undefined ? [instructions] : []),
    // The caller's instructions follow those of the agent.
    ...history.flatMap((one) => (one.instructions ? [one.text] : [])),
    ...(isFenced ? [FENCE_RULE] : []),
    ...(said.length > 0 ? [conversationText(said, isNew)] : []),
    ...skills.map(({ skillId, body }) => `Use this skill, ${skillId}:\n\n${body}`),
    ...(context === undefined ? [] : [fence("What came with the message, as JSON.", context)]),
    outside ? fence("The message.", text) : text,
  ];
}

/** A conversation with one line of JSON per message, so that no message can look like another one, or like the end. */
function conversationText(messages: readonly BackendMessage[], isAll: boolean): string {
  const { history, historyOmitted } = newest(messages);
  const lines = history.map(({ role, text, outside }) =>
    outside ? fence(`Then came a message (${role}).`, text) : JSON.stringify({ role, text }),
  );
  const head = isAll ? "The conversation before this message" : "What was said since you were asked last";
  const left = historyOmitted > 0 ? `, but for the first ${historyOmitted} messages` : "";
  return `${head}, oldest first${left}; you are the assistant:\n${lines.join("\n")}`;
}
