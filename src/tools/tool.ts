/**
 * Something that a model may have done for it while it answers. What it gives back is read by the model, never by a caller: it may
 * come from outside, and is marked as such.
 */
export type Tool = {
  /** As the model calls it: letters, digits, `_` and `-`, 64 at most. */
  name: string;
  description: string;
  /** What it answers was written by somebody else: a model is shown it as data. */
  isOutside: boolean;
  /** JSON Schema of its arguments. */
  parameters: Readonly<Record<string, unknown>>;
  /** Its answer in words. Throws a ToolError with words that the model may read; anything else it throws is told to nobody but the log. */
  call(args: unknown, signal: AbortSignal): Promise<string>;
};

export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** Where the tools of an agent come from. */
export interface ToolSource extends AsyncDisposable {
  /**
   * The tools as they are now, started where they were not. A server that does not answer is left out and told of in `missing`: the others
   * are not made to wait for it past its time. `hops`: through how many announcements and agents came what asks for them.
   */
  tools(
    signal: AbortSignal,
    hops: number,
  ): Promise<{ tools: readonly Tool[]; missing: readonly { server: string; reason: string }[] }>;
}
