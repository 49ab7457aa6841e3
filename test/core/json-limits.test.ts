import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limitPassed as limitOf, memberOf, partsOf } from "#kit/json-limits.ts";

function limitPassed(text: string) {
  return limitOf(text, { depth: 64, values: 10_000 });
}

describe("the parts of a JSON text", () => {
  const piece = fc.constantFrom('"', "\\", ",", ":", "[", "}", "x", "∢", "😀", "\\\\".repeat(32));
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(""));
  const value = fc.oneof(text, fc.array(text), fc.dictionary(text, fc.oneof(text, fc.array(fc.integer()))));

  test("are the values of lists and objects, whatever their texts have", () => {
    const areSame = fc.property(
      fc.array(value, { minLength: 1 }),
      fc.dictionary(text, value, { minKeys: 1 }),
      (list, object) => {
        for (const space of [undefined, 2]) {
          expect(partsOf(JSON.stringify(list, null, space)).map((part) => JSON.parse(part))).toEqual(list);
          const members = partsOf(JSON.stringify(object, null, space)).map(memberOf);
          expect(members.map(({ name, value }) => [name, JSON.parse(value)])).toEqual(Object.entries(object));
        }
      },
    );
    fc.assert(areSame, { numRuns: 500 });
  });
});

describe("the limits of a JSON text", () => {
  const long = "x".repeat(200);

  test("ignore brackets and commas in a string, however long it is and whatever is escaped in it", () => {
    for (const inside of [long, `${long}\\"`, `${long}\\\\`, `\\"${long}\\\\\\"`, `${"\\\\".repeat(100)}\\"`]) {
      const text = `["${inside}${"[".repeat(200)}${",".repeat(20_000)}"]`;
      expect([limitPassed(text), typeof JSON.parse(text)]).toEqual([undefined, "object"]);
    }
  });

  test("apply to everything after a string", () => {
    for (const inside of [long, `${long}\\\\`, `\\"${long}\\"${long}`])
      expect(limitPassed(`["${inside}",${"[".repeat(64)}`)).toBe("is nested deeper than 64 levels");
  });

  test("apply to everything after a number, however long it is", () => {
    for (const length of [1, 31, 32, 33, 1_000]) {
      const number = "1".repeat(length);
      expect(limitPassed(`[${number},${"[".repeat(64)}${" ".repeat(20_000)}`)).toBe("is nested deeper than 64 levels");
      const numbers = Array.from({ length: 9_999 }, () => number);
      expect(limitPassed(`[${numbers.join(",")}]`)).toBeUndefined();
      expect(limitPassed(`[${numbers.join(",")},1,1]`)).toBe("holds more than 10000 values");
      expect(limitPassed(`{"a" : ${number.repeat(100)} , "b":"${"[,".repeat(9_000)}"}`)).toBeUndefined();
    }
  });

  test("are not exceeded by 10 000 values that are all strings", () => {
    const pairs = Array.from({ length: 9_999 }, (_, n) => `"${n}":"${n}"`);
    expect(limitPassed(`{${pairs.join(",")}}`)).toBeUndefined();
    expect(limitPassed(`{${pairs.join(",")},"a":"a","b":"b"}`)).toBe("holds more than 10000 values");
  });
});
