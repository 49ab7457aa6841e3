import type { LanguageModelV3Message } from "@ai-sdk/provider";
import { BackendError } from "#kit/errors.ts";

/** Limits in characters. `toolArguments`: those of one call. `toolMessages`: all calls of a turn and their results. */
export type ToolLimits = { toolArguments: number; toolMessages: number };

/** The number of calls in one answer of a model. */
const MOST_CALLS = 1_000;

/** The sizes of the tool calls in one answer, which may come in pieces. */
export class CallSizes {
  readonly #limits: ToolLimits;
  readonly #sizes = new Map<string, number>();
  #all = 0;

  constructor(limits: ToolLimits) {
    this.#limits = limits;
  }

  /** Adds a piece of a call. Throws past a limit. */
  add(id: string, characters: number): void {
    const { toolArguments, toolMessages } = this.#limits;
    const size = (this.#sizes.get(id) ?? 0) + characters;
    this.#sizes.set(id, size);
    this.#all += characters;
    if (size > toolArguments)
      throw new BackendError(pastLimit("the arguments of a tool call", "toolArguments", toolArguments));
    if (this.#all > toolMessages) throw tooManyMessages(toolMessages);
    if (this.#sizes.size > MOST_CALLS) throw new BackendError(`the model called more than ${MOST_CALLS} tools at once`);
  }
}

export function tooManyMessages(most: number): BackendError {
  return new BackendError(pastLimit("the turn's tool calls and their results", "toolMessages", most));
}

function pastLimit(what: string, name: keyof ToolLimits, most: number): string {
  return `${what} are longer than ${most} characters (\`limits.${name}\`)`;
}

/** The size of a message to a model: that of its texts, and of the rest in JSON. */
export function sizeOf(content: Exclude<LanguageModelV3Message["content"], string>): number {
  return content.reduce((sum, part) => {
    const { text, ...rest } = "text" in part ? part : { ...part, text: "" };
    return sum + text.length + JSON.stringify(rest).length;
  }, 0);
}
