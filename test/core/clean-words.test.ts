import { describe, expect, it } from "vitest";
import { cleanSentence } from "#kit/clean-words.ts";

describe("the text of another program", () => {
  it.each([
    ["a\n\tb\u0000c", "a b c"],
    ["\u001b[31mred\u001b[0m \u001b]0;title\u0007end", "red end"],
    ["to \u202egnp.exe", "to gnp.exe"],
    ["half \ud83d and whole 🙂", "half and whole 🙂"],
    ["see https://ann:s3cret@example.com/x", "see https://example.com/x"],
    ["with sk-ant-api03-abcdef and Bearer abc.def-123", "with … and …"],
    ["a task-force and sk-1 of Bearer", "a task-force and sk-1 of Bearer"],
    [" \n ", ""],
  ])("is one clean line: %j", (said, clean) => {
    expect(cleanSentence(said)).toBe(clean);
  });

  it("is cut between characters", () => {
    expect(cleanSentence("x".repeat(1_000), 10)).toBe(`${"x".repeat(9)}…`);
    expect(cleanSentence("🙂".repeat(10), 10)).toBe("🙂🙂🙂🙂…");
  });

  it("is read only as far as the limit requires", () => {
    expect(cleanSentence(`//${"@".repeat(50_000_000)}`, 10)).toBe("//@@@@@@@…");
  });
});
