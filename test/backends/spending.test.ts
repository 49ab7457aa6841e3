import { expect, it } from "vitest";
import { tokensOf, tokensOfTools } from "#backends/model/spending.ts";

const CALL = { type: "tool-call", toolCallId: "1", toolName: "say" } as const;

it("estimates a prompt with the input of its tool calls, and the value of their results", () => {
  const asked = { role: "assistant", content: [{ ...CALL, input: { text: "x".repeat(400) } }] } as const;
  const output = { type: "json", value: { text: "y".repeat(800) } } as const;
  const answered = { role: "tool", content: [{ ...CALL, type: "tool-result", output }] } as const;
  expect(tokensOf([asked as never])).toBeGreaterThanOrEqual(100);
  expect(tokensOf([answered as never])).toBeGreaterThanOrEqual(200);
});

it("estimates tools with their descriptions and parameters", () => {
  const tool = { name: "say", isOutside: false, call: () => Promise.resolve("") };
  const parameters = { type: "object", description: "p".repeat(400) };
  expect(tokensOfTools([{ ...tool, description: "d".repeat(400), parameters }])).toBeGreaterThanOrEqual(200);
});
