import { expect, it } from "vitest";
import { createSessionStreams } from "#core/sessions/session-streams.ts";
import { createLiveReplies } from "#core/turns/live-replies.ts";
import type { Entry, Store } from "#store/store.ts";

function createStreams() {
  return createSessionStreams({ store: {} as Store, live: createLiveReplies() });
}

const SESSION = { sessionId: "chat:a", agent: "main", ordinal: 1, contextBytes: 0 };
const usage = { input: 0, output: 0 };
function queued(turnId: string): Entry {
  return { seq: 1, at: 0, turnId, name: "turn.queued" };
}
function completed(turnId: string): Entry {
  return { seq: 2, at: 0, turnId, name: "turn.completed", usage, reply: "" };
}

it("a waiter is notified once, of the end of its turn", () => {
  const streams = createStreams();
  const heard: string[] = [];
  const stop = streams.onTurnEnd({ turnId: "turn_1", sessionId: "chat:a" }, (end) => {
    heard.push(typeof end === "string" ? end : end.name);
    stop();
  });
  streams.watcher.entries(SESSION, [queued("turn_1"), completed("turn_2")]);
  expect(heard).toEqual([]);
  streams.watcher.entries(SESSION, [completed("turn_1")]);
  streams.watcher.entries(SESSION, [completed("turn_1")]);
  expect(heard).toEqual(["turn.completed"]);
});

it("a waiter is notified if its turn is deleted with the session", () => {
  const streams = createStreams();
  const heard: unknown[] = [];
  streams.onTurnEnd({ turnId: "turn_1", sessionId: "chat:a" }, (entry) => heard.push(entry));
  streams.watcher.sessionDeleted({ ...SESSION, sessionId: "chat:b" }, { seq: 3, at: 0 });
  expect(heard).toEqual([]);
  streams.watcher.sessionDeleted(SESSION, { seq: 3, at: 0 });
  expect(heard).toEqual(["erased"]);
});

it("every waiter is notified, even if one of them leaves during the notification", () => {
  const streams = createStreams();
  const heard: number[] = [];
  const stops = [1, 2, 3].map((n) =>
    streams.onTurnEnd({ turnId: "turn_1", sessionId: "chat:a" }, () => {
      heard.push(n);
      stops[0]?.();
    }),
  );
  streams.watcher.entries(SESSION, [completed("turn_1")]);
  streams.watcher.entries(SESSION, [completed("turn_1")]);
  expect(heard).toEqual([1, 2, 3, 2, 3]);
});
