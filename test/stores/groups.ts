import type { TurnGroup } from "#store/store.ts";

/** A group, in which a test sets only the relevant fields. */
export function groupOf(options: Partial<TurnGroup> = {}): TurnGroup {
  const { key = "group:push 1" } = options;
  return { key, windowMs: 30_000, maxWaitMs: 300_000, take: "last", longestText: 1_000, ...options };
}
