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

/** Tool calls as answers and pushes show them. */
export function showToolCalls(calls: readonly ToolCall[]): ToolCalls {
  return calls.map(({ at, ...call }) => (at === undefined ? call : { ...call, at: new Date(at).toISOString() }));
}
