import { describe, expect, it } from "vitest";
import { pathOfWork, streamOf, type Work, workOfTurn, writtenAfter } from "#console/lib/live-stream.ts";
import type { TurnSummary } from "#generated/clients/typescript/src/rest-types.ts";

function at(ms: number) {
  return new Date(ms).toISOString();
}
function turn(id: string, ms: number, more: Partial<TurnSummary> = {}): TurnSummary {
  return {
    turn_id: id,
    session_id: "agent:main:main",
    agent: "main",
    surface: "heartbeat",
    caller: "main",
    status: "completed",
    attempt: 1,
    created_at: at(ms),
    started_at: at(ms),
    ended_at: at(ms + 20),
    model: null,
    error: null,
    usage: { input: 3, output: 4, total: 7 },
    delivery_id: null,
    preview: "2 system events 1. evt_01M8",
    reply_preview: "Noted.",
    announcement: null,
    ...more,
  };
}
function request(id: string, ms: number): Work {
  return { ...workOfTurn(turn(id, ms)), operation: "chat.send" };
}

describe("the stream of work", () => {
  it("MUST have one row for each unit of work, the newest first", () => {
    const requests = [request("dlv_3", 3_000), request("dlv_1", 1_000)];
    const turns = [
      turn("turn_3", 3_000, { delivery_id: "dlv_3", surface: "rest" }),
      turn("turn_beat", 2_000),
      turn("turn_1", 1_001, { delivery_id: "dlv_1", surface: "hooks" }),
    ];
    const ids = (most: number) => streamOf(requests, turns, most).map(({ delivery_id }) => delivery_id);
    expect(ids(10)).toEqual(["dlv_3", "turn_beat", "dlv_1"]);
    expect(ids(2)).toEqual(["dlv_3", "turn_beat"]);
    expect(streamOf([], [], 2)).toEqual([]);
  });

  it("MUST name the turn of a heartbeat, and link to the turn", () => {
    const beat = workOfTurn(turn("turn_beat", 0));
    expect(beat).toMatchObject({ preview: "Heartbeat · 2 system events", tokens: 7, outcome: "completed" });
    expect(pathOfWork(beat)).toBe("/t/turn_beat");
    expect(pathOfWork(request("dlv_1", 0))).toBe("/d/dlv_1");
    const failed = turn("turn_2", 0, {
      surface: "rpc",
      status: "failed",
      usage: null,
      error: { name: "turn-failed", title: "Turn failed" },
      preview: "Hello",
    });
    expect(workOfTurn(failed)).toMatchObject({
      operation: "Turn",
      preview: "Hello",
      tokens: null,
      error: { name: "turn-failed", detail: null },
    });
  });
});

describe("a reply that is being written", () => {
  it("MUST grow by its pieces, each once", () => {
    const first = writtenAfter(undefined, { offset: 0, text: "Good " });
    const second = writtenAfter(first, { offset: 5, text: "morning" });
    expect(second).toEqual({ text: "Good morning", length: 12 });
    expect(writtenAfter(second, { offset: 5, text: "morning" })).toEqual(second);
    expect(writtenAfter(second, { offset: 10, text: "ng, Ada" }).text).toBe("Good morning, Ada");
  });

  it("MUST show a gap, and start again with another attempt", () => {
    expect(writtenAfter(undefined, { offset: 40, text: "later" }).text).toBe("…later");
    const before = writtenAfter(undefined, { offset: 0, text: "first" });
    expect(writtenAfter(before, { offset: 9, text: "end" }).text).toBe("first…end");
    expect(writtenAfter(before, { offset: 0, text: "second" }).text).toBe("second");
  });

  it("MUST hold only the end of a long reply", () => {
    let written = writtenAfter(undefined, { offset: 0, text: "x".repeat(10_000) });
    written = writtenAfter(written, { offset: 10_000, text: "end" });
    expect(written.text).toHaveLength(300);
    expect(written.text.endsWith("xend")).toBe(true);
    expect(written.length).toBe(10_003);
  });
});
