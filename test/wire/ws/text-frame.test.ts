import fc from "fast-check";
import { expect, test } from "vitest";
import * as ws from "ws";
import { yieldToOthers } from "#kit/yield.ts";
import { joinFrames, textFrame } from "#wire/socket/frame.ts";

/** Not among the types of `ws`. */
const { Sender } = ws as unknown as { Sender: { frame(data: Buffer, options: object): Buffer[] } };
const OPTIONS = { fin: true, opcode: 1, mask: false, readOnly: true, rsv1: false };

/** The frame as `ws` makes it. */
function frameOfWs(text: string): Buffer {
  return Buffer.concat(Sender.frame(Buffer.from(text), OPTIONS));
}

test("a push is framed like a frame of `ws`, whatever its length", () => {
  for (const length of [0, 1, 125, 126, 127, 65_535, 65_536, 65_537, 1_000_000])
    expect(textFrame("x".repeat(length)).equals(frameOfWs("x".repeat(length)))).toBe(true);
});

test("a push is framed like a frame of `ws`, whatever its characters", () => {
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme", maxLength: 200 }));
  fc.assert(fc.property(text, (some) => textFrame(some).equals(frameOfWs(some))));
  expect(textFrame("\ud800").equals(frameOfWs("\ud800"))).toBe(true);
});

test("equal frames are joined once in a tick, and other frames are not mistaken for them", async () => {
  const [one, two, three] = ["one", "two", "three"].map(textFrame) as [Buffer, Buffer, Buffer];
  const first = joinFrames([one, two]);
  expect(first.equals(Buffer.concat([one, two]))).toBe(true);
  expect(joinFrames([one, two])).toBe(first);
  for (const others of [[two, one], [one], [one, two, three], [three, two], [one, two]])
    expect(joinFrames(others).equals(Buffer.concat(others))).toBe(true);
  const last = joinFrames([one, two]);
  await yieldToOthers();
  await yieldToOthers();
  expect(joinFrames([one, two])).not.toBe(last);
});
