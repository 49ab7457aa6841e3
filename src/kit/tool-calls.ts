import type { ToolCalls } from "#generated/rpc-types.ts";

/** A call of a tool, from `at` for `ms`. A call that failed has its `reason`. `arguments` and `result` are cut, and absent if content is not stored. */
export type ToolCall = {
  tool: string;
  ok: boolean;
  ms: number;
  at?: number | undefined;
  reason?: string | undefined;
  arguments?: string | undefined;
  result?: string | undefined;
};

/** The characters of a message, with those of its tool calls. */
export function charactersOf(message: { text: string; toolCalls?: readonly ToolCall[] | undefined }): number {
  let sum = message.text.length;
  if (message.toolCalls === undefined) return sum;
  for (const { tool, reason = "", arguments: args = "", result = "" } of message.toolCalls)
    sum += tool.length + reason.length + args.length + result.length;
  return sum;
}

/** Tool calls as answers and pushes show them. */
export function showToolCalls(calls: readonly ToolCall[]): ToolCalls {
  return calls.map(({ at, ...call }) => (at === undefined ? call : { ...call, at: new Date(at).toISOString() }));
}
