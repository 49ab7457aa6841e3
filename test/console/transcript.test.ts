import { describe, expect, test } from "vitest";
import {
  EMPTY,
  onlyNewest,
  openTurns,
  type SessionPush,
  startsAnew,
  type Transcript,
  withPage,
  withPush,
} from "#console/lib/transcript.ts";

const AT = "2026-11-21T08:54:31.123Z";
function push(method: string, params: object): SessionPush {
  return { method, params: { at: AT, cursor: "c", ...params } };
}
function asked(turnId: string, seq: number, text = "Hi") {
  return push("message.created", { turnId, seq, messageId: `${turnId}-user`, role: "user", text });
}
function begun(turnId: string, seq: number) {
  return push("message.created", { turnId, seq, messageId: `${turnId}-reply`, role: "assistant", text: "" });
}
function piece(turnId: string, offset: number, text: string) {
  return push("message.delta", { turnId, seq: 3, messageId: `${turnId}-reply`, offset, text });
}
function whole(turnId: string, seq: number, text: string) {
  return push("message.completed", { turnId, seq, messageId: `${turnId}-reply`, text });
}
function stored(turnId: string, seq: number, role: "user" | "assistant", text: string, compacted = false) {
  return {
    messageId: `${turnId}-${role === "user" ? "user" : "reply"}`,
    role,
    text,
    turnId,
    seq,
    compacted,
    createdAt: AT,
  };
}

function replayed(pushes: SessionPush[], from: Transcript = EMPTY): Transcript {
  return pushes.reduce(withPush, from);
}
function texts({ messages }: Transcript) {
  return messages.map(({ text }) => text);
}

describe("a live transcript", () => {
  test("assembles a reply from its pieces", () => {
    const open = replayed([asked("a", 1), begun("a", 3), piece("a", 0, "Good "), piece("a", 5, "morning")]);
    expect(open.messages.at(-1)).toMatchObject({ text: "Good morning", isOpen: true });
    const done = replayed(
      [whole("a", 4, "Good morning."), push("turn.completed", { turnId: "a", seq: 5, reply: "" })],
      open,
    );
    expect(done.messages.at(-1)).toMatchObject({ text: "Good morning.", isOpen: false });
    expect(openTurns(done)).toEqual([]);
  });

  test("shows tool calls with the reply that used them", () => {
    const toolCalls = [{ tool: "find_order", ok: true, ms: 12 }];
    const message = { turnId: "a", seq: 4, messageId: "a-reply", text: "Found it.", toolCalls };
    const done = replayed([asked("a", 1), begun("a", 3), push("message.completed", message)]);
    expect(done.messages.at(-1)).toMatchObject({ text: "Found it.", toolCalls });
  });

  test("is the same if pushes arrive twice", () => {
    const pushes = [
      asked("a", 1),
      push("turn.started", { turnId: "a", attempt: 1 }),
      begun("a", 3),
      piece("a", 0, "Good "),
    ];
    const resumed = replayed([begun("a", 3), piece("a", 0, "Good morn"), piece("a", 9, "ing")], replayed(pushes));
    expect(texts(resumed)).toEqual(["Hi", "Good morning"]);
    expect(texts(replayed([whole("a", 4, "Good morning"), piece("a", 0, "Good"), begun("a", 3)], resumed))).toEqual([
      "Hi",
      "Good morning",
    ]);
  });

  test("returns the place to read from if the beginning of a reply was missed", () => {
    const gap = replayed([piece("a", 5, "morning")]);
    expect(gap.missing).toEqual({ messageId: "a-reply", cursor: "c" });
    expect(gap.messages[0]).toMatchObject({ text: "", hasGap: true });
    const filled = replayed([piece("a", 0, "Good morning")], gap);
    expect(filled).toMatchObject({ missing: undefined, messages: [{ text: "Good morning", hasGap: false }] });
  });

  test("shows a waiting question before its answer", () => {
    const two = replayed([
      asked("a", 1, "One?"),
      begun("a", 3),
      asked("b", 4, "Two?"),
      whole("a", 6, "One."),
      begun("b", 8),
    ]);
    expect(texts(two)).toEqual(["One?", "One.", "Two?", ""]);
  });

  test("starts a reply again with another attempt", () => {
    const again = replayed([
      asked("a", 1),
      begun("a", 3),
      piece("a", 0, "Goo"),
      push("turn.started", { turnId: "a", attempt: 2 }),
    ]);
    expect(texts(again)).toEqual(["Hi"]);
    expect(again.turns.a).toMatchObject({ status: "running", attempt: 2 });
  });

  test("shows the written part of a cancelled turn, and drops an empty reply of a failed one", () => {
    const cancelled = replayed([
      begun("a", 3),
      piece("a", 0, "Goo"),
      push("turn.cancelled", { turnId: "a", reply: "Good" }),
    ]);
    expect(cancelled.messages).toMatchObject([{ text: "Good", isOpen: false }]);
    const failed = replayed([
      asked("b", 1),
      begun("b", 3),
      push("turn.failed", { turnId: "b", error: { name: "turn-failed" } }),
    ]);
    expect(texts(failed)).toEqual(["Hi"]);
    expect(failed.turns.b).toMatchObject({ status: "failed", error: { name: "turn-failed" } });
  });

  test("never reopens an ended turn", () => {
    const done = replayed([push("turn.completed", { turnId: "a", reply: "x" }), push("turn.queued", { turnId: "a" })]);
    expect(done.turns.a?.status).toBe("completed");
  });

  test("takes the model, usage and times of an ended turn from the stored page", () => {
    const done = replayed([push("turn.completed", { turnId: "a", reply: "x" })]);
    const turn = {
      turnId: "a",
      status: "completed",
      attempt: 1,
      surface: "rest",
      deliveryId: null,
      error: null,
    } as const;
    const times = {
      createdAt: "2026-01-01T00:00:00.000Z",
      startedAt: "2026-01-01T00:00:01.000Z",
      endedAt: "2026-01-01T00:00:02.000Z",
    };
    const usage = { input: 1, output: 2, total: 3 };
    const paged = withPage(done, { messages: [], turns: { a: { ...turn, ...times, model: "fast", usage } } });
    expect(paged.turns.a).toMatchObject({ model: "fast", usage, at: times.endedAt });
    const running = { ...turn, ...times, status: "running", endedAt: null, model: null, usage: null } as const;
    expect(withPage(paged, { messages: [], turns: { a: running } }).turns.a).toMatchObject({ status: "completed" });
  });

  test("joins pages without repetition, and stored values have priority", () => {
    const live = replayed([asked("b", 7, "New?"), begun("b", 9), piece("b", 0, "Ne")]);
    const messages = [
      stored("b", 7, "user", "New?"),
      stored("a", 4, "assistant", "Old."),
      stored("a", 1, "user", "Old?"),
    ];
    const paged = withPage(live, { messages });
    expect(texts(paged)).toEqual(["Old?", "Old.", "New?", "Ne"]);
    expect(texts(withPage(paged, { messages: [stored("b", 10, "assistant", "New.")] }))).toEqual([
      "Old?",
      "Old.",
      "New?",
      "New.",
    ]);
  });

  test("starts again if the newest page does not overlap the shown part", () => {
    const old = withPage(EMPTY, { messages: [stored("a", 1, "user", "Old?")] });
    const far = [stored("z", 90, "user", "Far?")];
    expect(startsAnew(old, far, false)).toBe(true);
    expect(texts(onlyNewest(old, { messages: far }))).toEqual(["Far?"]);
    expect(startsAnew(old, [stored("b", 5, "user", "Next?"), stored("a", 1, "user", "Old?", true)], false)).toBe(false);
  });

  test("starts again if only the end of a long conversation is read, and the unfinished turns remain", () => {
    const pushes = Array.from({ length: 300 }, (_, n) => [
      asked(`t${n}`, n * 10 + 1),
      begun(`t${n}`, n * 10 + 2),
      push("turn.completed", { turnId: `t${n}`, seq: n * 10 + 3, reply: "Yes" }),
    ]).flat();
    const long = replayed([...pushes, asked("open", 9001, "Still?"), begun("open", 9002), piece("open", 0, "Wai")]);
    const page = [stored("t299", 2992, "assistant", "Yes"), stored("t299", 2991, "user", "Hi")];
    expect(startsAnew(long, page, false)).toBe(false);
    expect(startsAnew(long, page, true)).toBe(true);
    const newest = onlyNewest(long, { messages: page });
    expect(texts(newest)).toEqual(["Hi", "Yes", "Wai"]);
    expect(Object.keys(newest.turns).sort()).toEqual(["open", "t299"]);
    expect(startsAnew(newest, page, true)).toBe(false);
  });

  test("requests a new read after a compaction or a reset, and ends when its session is deleted", () => {
    const one = replayed([push("session.compacted", {}), push("stream.reset", {}), push("unheard.of", {})]);
    expect(one.stale).toBe(2);
    expect(replayed([push("session.deleted", {})], one).isDeleted).toBe(true);
  });
});
