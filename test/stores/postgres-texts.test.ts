import { expect, it } from "vitest";
import { decodeText, encodeKey, encodeText } from "#store/postgres/texts.ts";

it.each([
  "",
  "it happened",
  "ü 漢 🙂",
  "a\u0000b",
  "a\ud800b",
  "\udc00",
  "\u0001",
  "\u0001\u0000",
  '\u0001"a"',
  "\ufeff\r\n",
])("stores any text in a form that PostgreSQL accepts, and returns it unchanged: %j", (text) => {
  const kept = encodeText(text);
  expect(kept).not.toContain("\u0000");
  expect(kept.isWellFormed()).toBe(true);
  expect(decodeText(kept)).toBe(text);
});

it("stores a text that PostgreSQL accepts without a change", () => {
  for (const text of ["", "hello ü 🙂", '{"a":1}']) expect(encodeText(text)).toBe(text);
});

it("distinguishes keys of any length with any characters", () => {
  const keys = ["a", "a\u0000", "a\ud800", "a\ud801", "x".repeat(300), "x".repeat(301), `${"x".repeat(300)}y`];
  const kept = keys.map(encodeKey);
  expect(new Set(kept).size).toBe(keys.length);
  for (const key of kept) expect(Buffer.byteLength(key)).toBeLessThan(1_000);
});
