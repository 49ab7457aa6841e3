import { describe, expect, it } from "vitest";
import { previewOf } from "#store/rules/previews.ts";

describe("the preview of a text", () => {
  it.each([
    ["a short text", "Good morning", "Good morning"],
    ["white space", " \n\t Good\r\n\r\n  morning\u00a0 ", "Good morning"],
    ["only white space", " ".repeat(10_000), ""],
    ["a long text", "x".repeat(121), "x".repeat(120)],
    ["a space at the end", `${"x".repeat(119)} y`, "x".repeat(119)],
    ["a character of two units at the end", `${"x".repeat(119)}🙂`, "x".repeat(119)],
    ["half a character", `${"x".repeat(100)}\ud83d`, "x".repeat(100)],
    ["a text behind much white space", `${"\n".repeat(10_000)}x`, "x"],
  ])("has one line of at most 120 characters: %s", (_, text, preview) => {
    expect(previewOf(text)).toBe(preview);
  });
});
