import { describe, expect, it } from "vitest";
import openapi from "#generated/openapi.json" with { type: "json" };
import openrpc from "#generated/openrpc.json" with { type: "json" };
import { demandOf, foremost, hintOf, insteadOf, suggest } from "#kit/fault-words.ts";

it.each([
  ["type", { type: "array" }, "be a list"],
  ["type", { type: ["integer", "null"] }, "be an integer or null"],
  ["const", { allowedValue: "2.0" }, 'be "2.0"'],
  ["enum", { allowedValues: ["short", "long"] }, "be one of short, long"],
  ["enum", { allowedValues: ["text"] }, "be text"],
  ["exclusiveMinimum", { limit: 0 }, "be more than 0"],
  ["minLength", { limit: 1 }, "have at least 1 character"],
  ["maxItems", { limit: 64 }, "have at most 64 entries"],
  ["minProperties", { limit: 2 }, "have at least 2 fields"],
  ["not", {}, undefined],
])("describes what a value that violates %s %j must be", (keyword, params, demand) => {
  expect(demandOf({ keyword, params })).toBe(demand);
});

it("names the intended field, or the existing fields if there are only a few", () => {
  expect(hintOf("massage", ["message", "stream"])).toBe(" (did you mean message?)");
  expect(hintOf("nothing", ["message", "stream"])).toBe(" (there are message, stream)");
  expect(hintOf("nothing", ["message"])).toBe(" (there is message)");
  expect(hintOf("nothing", [])).toBe("");
  const many = Array.from({ length: 30 }, (_, n) => `field${n}-of-many`);
  expect(hintOf("x", many)).toMatch(/field19-of-many, …\)$/);
});

it("names a misspelt field before the required field that is missing because of it", () => {
  const faults = [{ message: "is required" }, { message: `is unknown${hintOf("massage", ["message"])}` }];
  expect(foremost(faults)).toBe(faults[1]);
  expect(foremost(faults.slice(0, 1))).toBe(faults[0]);
  expect(insteadOf("message", { massage: 1 })).toBe(" You sent `massage`. Did you mean `message`?");
  expect(insteadOf("message", {})).toBe("");
});

it("recognises the name that another API uses for the text of a message", () => {
  expect(insteadOf("text", { mode: "now", message: "hi" })).toBe(" You sent `message`. Did you mean `text`?");
  expect(insteadOf("message", { content: "hi" })).toBe(" You sent `content`. Did you mean `message`?");
  expect(insteadOf("skill_id", { content: "hi" })).toBe("");
});

it("lists the existing names if no name is similar to the given one", () => {
  expect(suggest("suport", ["main", "support"])).toBe(" Did you mean `support`?");
  expect(suggest("gpt-4o", ["main", "support"])).toBe(" There are `main`, `support`.");
  expect(suggest("gpt-4o", ["main"])).toBe(" There is `main`.");
  expect(suggest("gpt-4o", [])).toBe("");
});

it("compares no long names of an unauthenticated caller", () => {
  const long = "message".repeat(200_000);
  expect(hintOf(long, ["message"])).toBe(" (there is message)");
  expect(insteadOf("message", { [long]: 1, [`${long}x`]: 1 })).toBe("");
});

describe("a pattern of the contract for input of callers", () => {
  type Part = Record<string, unknown>;
  const reached = (part: unknown, document: Part, seen = new Set<unknown>()): Part[] => {
    if (typeof part !== "object" || part === null || seen.has(part)) return [];
    seen.add(part);
    const { $ref } = part as Part;
    const target =
      typeof $ref === "string" && $ref.startsWith("#/")
        ? $ref
            .slice(2)
            .split("/")
            .reduce<unknown>((at, key) => (at as Part)[key.replaceAll("~1", "/").replaceAll("~0", "~")], document)
        : undefined;
    return [part as Part, ...[...Object.values(part), target].flatMap((inner) => reached(inner, document, seen))];
  };
  const operations = Object.values(openapi.paths).flatMap((path): Part[] => Object.values(path));
  const sent = [
    ...operations.flatMap(({ parameters, requestBody }) => reached([parameters, requestBody], openapi)),
    ...openrpc.methods.flatMap(({ params }) => reached(params, openrpc)),
  ];
  const patterns = new Set(sent.flatMap(({ pattern }) => (typeof pattern === "string" ? [pattern] : [])));

  it("has its own description", () => {
    expect(patterns.size).toBeGreaterThanOrEqual(4);
    for (const pattern of patterns) {
      const demand = demandOf({ keyword: "pattern", params: { pattern } });
      expect(demand, pattern).not.toBe(demandOf({ keyword: "pattern", params: { pattern: "^of no contract$" } }));
    }
  });
});
