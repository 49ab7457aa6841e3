import { expect, test } from "vitest";
import { textOfUtf8, utf8InStretches } from "#kit/utf8.ts";

test.each(["x", "é", "€", "😀", "\0", "\u2028", "\ufeff", "x😀é", `${"x".repeat(99)}é`])(
  "bytes give the text that they were made of, few or many: %j",
  (piece) => {
    for (const times of [0, 1, 100, 1_365, 4_095, 4_096, 5_000]) {
      const text = piece.repeat(times);
      expect(textOfUtf8(Buffer.from(text)) === text).toBe(true);
    }
  },
);

test("a part of shared memory is read, and nothing next to it", () => {
  const text = "né😀".repeat(2_000);
  const length = Buffer.byteLength(text);
  const memory = Buffer.from(new SharedArrayBuffer(length + 20));
  memory.fill("x").write(text, 7);
  expect(textOfUtf8(memory, 7, 7 + length) === text).toBe(true);
  expect(textOfUtf8(memory, 0, 7)).toBe("xxxxxxx");
});

test("a text that is written in parts gives the same bytes, wherever it is cut, and other work runs meanwhile", async () => {
  let turns = 0;
  const count = () => {
    turns++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  for (const piece of ["x", "é", "€", "😀", "x😀", "\ud83d", "\ude00x"]) {
    const text = piece.repeat(Math.ceil(300_001 / piece.length));
    turns = 0;
    expect((await utf8InStretches(text)).equals(Buffer.from(text))).toBe(true);
    expect(turns).toBeGreaterThanOrEqual(2);
  }
  clearImmediate(counting);
  expect(await utf8InStretches("")).toHaveLength(0);
});
