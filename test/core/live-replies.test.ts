import { expect, it } from "vitest";
import { createLiveReplies, readSince } from "#core/turns/live-replies.ts";
import { yieldToOthers } from "#kit/yield.ts";

it("reads a reply from any place on while it grows", () => {
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

it("closes the reply of one attempt, and not that of the next", () => {
  const live = createLiveReplies();
  const first = live.open("turn_1", "session_1", "msg_1", 4);
  const second = live.open("turn_1", "session_1", "msg_2", 7);
  live.close(first);
  expect(live.ofSession("session_1")).toBe(second);
  live.close(second);
  expect(live.ofSession("session_1")).toBeUndefined();
});
