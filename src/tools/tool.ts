/**
 * An action that a model may request while it answers. Its result is read by the model, never by a caller. The result may come
 * from outside, and is then marked as such.
 */
export type Tool = {
  /** The name by which the model calls it: letters, digits, `_` and `-`, 64 at most. */
  name: string;
  description: string;
  /** True if its answers are written by an outside party: a model sees them as data. */
  isOutside: boolean;
  /** JSON Schema of its arguments. */
  parameters: Readonly<Record<string, unknown>>;
  /** Returns its answer as text. Throws a ToolError with a message that the model may read; any other error is only logged. */
  call(args: unknown, signal: AbortSignal): Promise<string>;
};

export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** The source of an agent's tools. */
export interface ToolSource extends AsyncDisposable {
  /**
   * The current tools; servers that do not run are started. A server that does not answer is omitted and listed in `missing`: the others do not wait
   * for it beyond its time limit. `hops`: the number of announcements and agents that led to the request.
   */
  tools(
    signal: AbortSignal,
    hops: number,
  ): Promise<{ tools: readonly Tool[]; missing: readonly { server: string; reason: string }[] }>;
}
