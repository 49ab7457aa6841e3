import { expect, test } from "vitest";
import { backwards, type Seen } from "./watching.ts";

const turn = (
  status: "queued" | "running" | "completed" | "failed",
  attempt: number,
  reply: string | null = null,
): Seen => ({
  kind: "turn",
  turn: { status, attempt, reply, error: null },
});
const event = (status: "queued" | "handled" | "dead", attempts = 0, turnId: string | null = null): Seen => ({
  kind: "event",
  event: { status, attempts, turnId },
});
const session = (messageCount: number, lastSeq: number): Seen => ({ kind: "session", messageCount, lastSeq });

test.each<[Seen, Seen]>([
  [turn("queued", 0), turn("queued", 0)],
  [turn("queued", 0), turn("running", 1)],
  [turn("running", 1), turn("queued", 1)],
  [turn("queued", 1), turn("running", 2)],
  [turn("running", 3), turn("failed", 3)],
  [turn("queued", 0), turn("completed", 1, "hi")],
  [turn("completed", 1, "hi"), turn("completed", 1, "hi")],
  [event("queued"), event("queued", 1)],
  [event("queued", 2), event("dead", 3)],
  [event("handled", 0, "turn_1"), event("handled", 0, "turn_1")],
  [session(2, 4), session(2, 4)],
  [session(2, 4), session(3, 7)],
])("%j goes on to %j", (before, later) => {
  expect(backwards(before, later)).toBeUndefined();
});

test.each<[Seen, Seen]>([
  [turn("running", 1), turn("queued", 0)],
  [turn("queued", 1), turn("running", 1)],
  [turn("running", 2), turn("running", 1)],
  [turn("completed", 1, "hi"), turn("running", 2)],
  [turn("completed", 1, "hi"), turn("failed", 1)],
  [turn("completed", 1, "hi"), turn("completed", 1, "ho")],
  [event("queued", 1), event("queued", 0)],
  [event("handled", 0, "turn_1"), event("queued", 0)],
  [event("handled", 0, "turn_1"), event("handled", 0, "turn_2")],
  [event("dead", 3), event("handled", 3, "turn_1")],
  [session(3, 7), session(2, 7)],
  [session(3, 7), session(3, 4)],
  [session(3, 7), turn("queued", 0)],
])("%j does not go on to %j", (before, later) => {
  expect(backwards(before, later)).toEqual(expect.any(String));
});
