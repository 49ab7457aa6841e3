import { describe, expect, it } from "vitest";
import { dryRunWords } from "#cli/dry-run.ts";
import type { DryRun, PlannedTurn } from "#generated/clients/typescript/src/rest-types.ts";

const NONE = { model: null, delivery: "none", announce_to: null, channel: null, to: null, thread: null } as const;
const WAIT = { window_ms: 30_000, max_wait_ms: 300_000, take: "last" } as const;

function wordsOf(turn: Partial<PlannedTurn>): string {
  const planned = { ...NONE, agent: "main", session_id: null, coalesce: null, notes: [], ...turn };
  const tried = { mapping: "pull", path: "/hooks/pull", verify: null, matched: true, failed: null, message: "hi" };
  const run: DryRun = { starts: "pull", mappings: [{ ...tried, turn: planned }] };
  return dryRunWords(run);
}

describe("hooks test prints", () => {
  it("the agent and the message of a plain mapping", () => {
    expect(wordsOf({})).toBe("✓ pull matches  → main\n    hi\npull would start a turn.");
  });

  it("the session, the address of the reply, and the burst that a request would open", () => {
    const turn = {
      session_id: "webhook:pr:12",
      to: "C1",
      thread: "17.2",
      coalesce: { key: "12", ...WAIT, joins: null },
    };
    expect(wordsOf(turn).split("\n")).toEqual([
      "✓ pull matches  → main, session webhook:pr:12",
      "  reply to C1, thread 17.2",
      "  key 12: opens a turn that waits 30 s after the last request, at most 5 m 00 s",
      "    hi",
      "pull would start a turn.",
    ]);
  });

  it("the open turn that the request would join", () => {
    const joins = { turn_id: "turn_1", requests: 3, closes_at: "2026-11-21T09:13:00.105Z" };
    const lines = wordsOf({ coalesce: { key: "a\nb", ...WAIT, joins } }).split("\n");
    expect(lines[1]).toMatch(/^ {2}key a.*b: joins turn_1 \(3 so far\), which waits until /);
    expect(lines.at(-1)).toBe("pull would join an open turn.");
  });

  it("the places without a value", () => {
    expect(wordsOf({ notes: ["`session`: {body.n} has no value, so the turn gets a new session."] })).toContain(
      "\n  `session`: {body.n} has no value, so the turn gets a new session.\n",
    );
  });
});
