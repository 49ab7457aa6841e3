import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { endOfString, limitPassed } from "#wire/call/json-limits.ts";

/** As one would write it down first: unit by unit. */
const plainEnd = (text: string, quote: number): number => {
  for (let at = quote + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
};

describe("the end of a JSON string", () => {
  const piece = fc.constantFrom(
    '"',
    "\\",
    '\\"',
    "\\\\",
    "x",
    "∢",
    "😀",
    "x".repeat(63),
    "\\\\".repeat(32),
    "y".repeat(64),
  );
  const texts = fc.array(piece, { maxLength: 40 }).map((pieces) => `"${pieces.join("")}`);

  test("is where it is unit by unit, whatever is escaped before and after it is looked for", () => {
    const isSame = fc.property(texts, (text) => {
      expect(endOfString(text, 0)).toBe(plainEnd(text, 0));
    });
    fc.assert(isSame, { numRuns: 2_000 });
  });
});

describe("the limits of a body", () => {
  const long = "x".repeat(200);

  test("look at no bracket and no comma in a string, however long it is and whatever is escaped in it", () => {
    for (const inside of [long, `${long}\\"`, `${long}\\\\`, `\\"${long}\\\\\\"`, `${"\\\\".repeat(100)}\\"`]) {
      const text = `["${inside}${"[".repeat(200)}${",".repeat(20_000)}"]`;
      expect([limitPassed(text), typeof JSON.parse(text)]).toEqual([undefined, "object"]);
    }
  });

  test("look at all that comes after a string", () => {
    for (const inside of [long, `${long}\\\\`, `\\"${long}\\"${long}`])
      expect(limitPassed(`["${inside}",${"[".repeat(64)}`)).toBe("The body is nested deeper than 64 levels.");
  });

  test("look at all that comes after a number, however long it is", () => {
    for (const length of [1, 31, 32, 33, 1_000]) {
      const number = "1".repeat(length);
      expect(limitPassed(`[${number},${"[".repeat(64)}${" ".repeat(20_000)}`)).toBe(
        "The body is nested deeper than 64 levels.",
      );
      const numbers = Array.from({ length: 9_999 }, () => number);
      expect(limitPassed(`[${numbers.join(",")}]`)).toBeUndefined();
      expect(limitPassed(`[${numbers.join(",")},1,1]`)).toBe("The body holds more than 10000 values.");
      expect(limitPassed(`{"a" : ${number.repeat(100)} , "b":"${"[,".repeat(9_000)}"}`)).toBeUndefined();
    }
  });

  test("are not passed by as many strings as 10 000 values may have", () => {
    const pairs = Array.from({ length: 9_999 }, (_, n) => `"${n}":"${n}"`);
    expect(limitPassed(`{${pairs.join(",")}}`)).toBeUndefined();
    expect(limitPassed(`{${pairs.join(",")},"a":"a","b":"b"}`)).toBe("The body holds more than 10000 values.");
  });
});
