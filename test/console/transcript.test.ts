import { describe, expect, it } from "vitest";
import { emptyTranscript, type Line, type Transcript, withPage, withPush } from "#console/lib/transcript.ts";

const AT = "2026-11-21T08:54:31.123Z";
const line = (messageId: string, more: Partial<Line> = {}): Line => ({
  ...{ messageId, role: "user", text: "Hi", turnId: "turn_1", createdAt: AT, compacted: false },
  ...more,
});
const run = (from: Transcript, ...pushes: [string, object][]): Transcript =>
  pushes.reduce((transcript, [method, params]) => withPush(transcript, method, params), from);

const REPLY: [string, object][] = [
  ["message.created", { messageId: "msg_1", role: "user", text: "Hi", turnId: "turn_1", at: AT }],
  ["turn.started", { turnId: "turn_1", at: AT }],
  ["message.created", { messageId: "msg_2", role: "assistant", text: "", turnId: "turn_1", at: AT }],
  ["message.delta", { messageId: "msg_2", offset: 0, text: "Good " }],
  ["message.delta", { messageId: "msg_2", offset: 5, text: "morning" }],
];

describe("a transcript that follows pushes", () => {
  it("MUST grow with the pieces of a reply, and close with its turn", () => {
    const open = run(emptyTranscript, ...REPLY);
    expect(open.lines.at(-1)).toMatchObject({ text: "Good morning", isOpen: true });
    expect(open.turns.get("turn_1")?.status).toBe("running");
    const done = run(
      open,
      ["message.completed", { messageId: "msg_2", text: "Good morning!" }],
      ["turn.completed", { turnId: "turn_1", at: AT }],
    );
    expect(done.lines.at(-1)).not.toHaveProperty("isOpen");
    expect(done.lines.map(({ text }) => text)).toEqual(["Hi", "Good morning!"]);
    expect(done.turns.size).toBe(0);
  });

  it("MUST double nothing where the stream went on from an older cursor", () => {
    const once = run(emptyTranscript, ...REPLY);
    const resumed = run(once, ...REPLY, [
      "message.delta",
      { messageId: "msg_2", offset: 0, text: "Good morning, Ada" },
    ]);
    expect(resumed.lines.map(({ text }) => text)).toEqual(["Hi", "Good morning, Ada"]);
  });

  it("MUST show a gap that a slow reader has", () => {
    const gap = run(emptyTranscript, ...REPLY, ["message.delta", { messageId: "msg_2", offset: 40, text: "end" }]);
    expect(gap.lines.at(-1)?.text).toBe("Good morning … end");
  });

  it("MUST keep why a turn failed, and that a session is gone", () => {
    const error = { name: "turn-failed", title: "Turn failed", detail: "The backend answered 503." };
    const failed = run(emptyTranscript, ...REPLY, ["turn.failed", { turnId: "turn_1", at: AT, error }]);
    expect(failed.turns.get("turn_1")).toMatchObject({ status: "failed", why: "The backend answered 503." });
    expect(failed.lines.at(-1)).not.toHaveProperty("isOpen");
    expect(run(failed, ["session.deleted", {}]).isDeleted).toBe(true);
  });
});

describe("a page of messages", () => {
  it("MUST stand in the order of time, and win over what pushes said", () => {
    const pushed = run(emptyTranscript, ...REPLY);
    const older = line("msg_0", { createdAt: "2026-11-21T08:00:00.000Z" });
    const { lines } = withPage(pushed, [line("msg_1", { text: "Hi there" }), older]);
    expect(lines.map(({ messageId, text }) => [messageId, text])).toEqual([
      ["msg_0", "Hi"],
      ["msg_1", "Hi there"],
      ["msg_2", "Good morning"],
    ]);
  });

  it("MUST leave a reply that is being written as it is", () => {
    const pushed = run(emptyTranscript, ...REPLY);
    const { lines } = withPage(pushed, [line("msg_2", { role: "assistant", text: "" })]);
    expect(lines.at(-1)).toMatchObject({ text: "Good morning", isOpen: true });
  });
});
