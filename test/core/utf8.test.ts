import { expect, test } from "vitest";
import { textOfUtf8 } from "#core/utf8.ts";

test.each(["x", "é", "€", "😀", "\0", "\u2028", "\ufeff", "x😀é", `${"x".repeat(99)}é`])(
  "bytes are the text that they were made of, few or many: %j",
  (piece) => {
    for (const times of [0, 1, 100, 1_365, 4_095, 4_096, 5_000]) {
      const text = piece.repeat(times);
      expect(textOfUtf8(Buffer.from(text)) === text).toBe(true);
    }
  },
);

test("a part of memory that is shared is read, and nothing beside it", () => {
  const text = "né😀".repeat(2_000);
  const length = Buffer.byteLength(text);
  const memory = Buffer.from(new SharedArrayBuffer(length + 20));
  memory.fill("x").write(text, 7);
  expect(textOfUtf8(memory, 7, 7 + length) === text).toBe(true);
  expect(textOfUtf8(memory, 0, 7)).toBe("xxxxxxx");
});
