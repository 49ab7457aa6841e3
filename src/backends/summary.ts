import { BackendError } from "#kit/errors.ts";
import type { BackendMessage, Chunks, TellUsed, Used } from "./backend.ts";
import { isLowSurrogate } from "./characters.ts";

/** A longer text is not a summary: its writer is stopped. The core accepts no longer summary from any writer. */
const SUMMARY_LIMIT = 4 * 1024 * 1024;

/** The text of a summary that arrives in pieces. The last reported usage is passed to `used` once, also if it fails. */
export async function summaryOf(chunks: Chunks, used: TellUsed | undefined): Promise<string> {
  let text = "";
  let usage: Used | undefined;
  let model: string | undefined;
  try {
    for await (const chunk of chunks) {
      if ("text" in chunk) {
        text += chunk.text;
        if (text.length > SUMMARY_LIMIT) throw new BackendError("the summary is longer than 4 MiB");
      } else if ("usage" in chunk) usage = chunk.usage;
      else if ("model" in chunk) model = chunk.model;
    }
    return text;
  } finally {
    usage = chunks.used?.() ?? usage;
    if (usage) used?.(usage, model);
  }
}

/** The maximum number of characters of each message in a digest. */
const CHARACTERS = 80;

/** A summary that no model writes: the beginning of each message, with its role. The same messages give the same text. */
export function digestOf(messages: readonly BackendMessage[]): string {
  return messages.map(({ role, text }) => `${role}: ${cut(text, CHARACTERS)}`).join("\n");
}

/** Never inside a character of two code units. */
function cut(text: string, length: number): string {
  return text.slice(0, isLowSurrogate(text.charCodeAt(length)) ? length - 1 : length);
}
