import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { placeOfFault } from "#wire/call/json-place.ts";

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("the place where a text is not valid JSON", () => {
  it.each([
    ['{"message": hi}', 1, 13],
    ['{"message": "hi",}', 1, 18],
    ['{\n  "message": "hi"\n  "stream": true\n}', 3, 3],
    ["{'message': 1}", 1, 2],
    ['{"a": 01}', 1, 8],
    ['{"a": "x\ny"}', 1, 9],
    ['{"a": "\\q"}', 1, 8],
    ["[1, 2]]", 1, 7],
    ["[1 2]", 1, 4],
    ["nul", 1, 1],
  ])("%s: line %d, column %d", (text, line, column) => {
    expect(placeOfFault(text)).toEqual({ line, column, isEnd: false });
  });

  it("is defined exactly if JSON.parse throws", () => {
    const pieces = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      '"a"',
      "1",
      "-",
      "0",
      ".5",
      "e9",
      "true",
      "null",
      "\\",
      " ",
      "\n",
      "é",
    ];
    const text = fc.oneof(
      fc.json(),
      fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (one) => {
        expect(placeOfFault(one) === undefined).toBe(isJson(one));
      }),
      { numRuns: 2_000 },
    );
  });
});
