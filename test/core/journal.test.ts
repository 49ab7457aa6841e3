import { expect, it } from "vitest";
import { createJournal } from "#core/sessions/journal.ts";
import { createLiveReplies, readSince } from "#core/turns/live-replies.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Entry } from "#store/store.ts";

const SESSION = { sessionId: "chat:a", agent: "main", ordinal: 1, contextBytes: 0 };
const usage = { input: 0, output: 0 };
function queued(turnId: string): Entry {
  return { seq: 1, at: 0, turnId, name: "turn.queued" };
}
function completed(turnId: string): Entry {
  return { seq: 2, at: 0, turnId, name: "turn.completed", usage, reply: "" };
}

it("tells who waits for a turn of its end alone, once", () => {
  const journal = createJournal();
  const heard: string[] = [];
  const stop = journal.onTurnEnd({ turnId: "turn_1", sessionId: "chat:a" }, (end) => {
    heard.push(typeof end === "string" ? end : end.name);
    stop();
  });
  journal.watcher.entries(SESSION, [queued("turn_1"), completed("turn_2")]);
  expect(heard).toEqual([]);
  journal.watcher.entries(SESSION, [completed("turn_1")]);
  journal.watcher.entries(SESSION, [completed("turn_1")]);
  expect(heard).toEqual(["turn.completed"]);
});

it("tells who waits for a turn that it was erased with its session", () => {
  const journal = createJournal();
  const heard: unknown[] = [];
  journal.onTurnEnd({ turnId: "turn_1", sessionId: "chat:a" }, (entry) => heard.push(entry));
  journal.watcher.sessionDeleted({ ...SESSION, sessionId: "chat:b" }, { seq: 3, at: 0 });
  expect(heard).toEqual([]);
  journal.watcher.sessionDeleted(SESSION, { seq: 3, at: 0 });
  expect(heard).toEqual(["erased"]);
});

it("notifies every waiter, even if one of them leaves during the notification", () => {
  const journal = createJournal();
  const heard: number[] = [];
  const stops = [1, 2, 3].map((n) =>
    journal.onTurnEnd({ turnId: "turn_1", sessionId: "chat:a" }, () => {
      heard.push(n);
      stops[0]?.();
    }),
  );
  journal.watcher.entries(SESSION, [completed("turn_1")]);
  journal.watcher.entries(SESSION, [completed("turn_1")]);
  expect(heard).toEqual([1, 2, 3, 2, 3]);
});

it("reads a reply from any place on, while it grows", () => {
  const live = createLiveReplies();
  const reply = live.open("turn_1", "session_1", "msg_1", 4);
  const pieces = ["a", "bcd", "", "🙂e", "f"];
  let whole = "";
  for (const piece of pieces) {
    live.append(reply, piece);
    whole += piece;
    for (let from = 0; from <= whole.length + 1; from++) expect(readSince(reply, from)).toBe(whole.slice(from));
  }
});

it("copies the text of a growing reply at most once, whatever the size of its pieces", () => {
  const live = createLiveReplies();
  const reply = live.open("turn_1", "session_1", "msg_1", 4);
  for (let n = 0; n < 2_000; n++) live.append(reply, "ab");
  const [first] = reply.pieces;
  for (let n = 0; n < 100_000; n++) live.append(reply, "ab");
  expect(reply.pieces[0]).toBe(first);
  expect(reply.pieces.length).toBeLessThan(2_000);
  expect(reply.pieces.join("")).toBe("ab".repeat(102_000));
  expect(readSince(reply, 1)).toHaveLength(reply.length - 1);
});

it("wakes the readers of a growing reply at the end of the tick, until they stop", async () => {
  const live = createLiveReplies();
  const heard: string[] = [];
  const stop = live.read("chat:a", () => heard.push("first"));
  live.read("chat:a", () => heard.push("second"));
  live.read("chat:b", () => heard.push("other"));
  const reply = live.open("turn_1", "chat:a", "msg_1", 4);
  for (const text of ["x", "y"]) live.append(reply, text);
  expect(heard).toEqual([]);
  await yieldToOthers();
  expect(heard).toEqual(["first", "second"]);
  stop();
  live.append(reply, "z");
  await yieldToOthers();
  expect(heard).toEqual(["first", "second", "second"]);
});

it("closes the reply of an attempt, and not that of the next one", () => {
  const live = createLiveReplies();
  const first = live.open("turn_1", "session_1", "msg_1", 4);
  const second = live.open("turn_1", "session_1", "msg_2", 7);
  live.close(first);
  expect(live.ofSession("session_1")).toBe(second);
  live.close(second);
  expect(live.ofSession("session_1")).toBeUndefined();
});
