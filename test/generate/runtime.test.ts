import ajvEqual from "ajv/dist/runtime/equal.js";
import ajvLength from "ajv/dist/runtime/ucs2length.js";
import { expect, test } from "vitest";
import { equal } from "../../scripts/generate/runtime/validators/equal.ts";
import { join } from "../../scripts/generate/runtime/validators/join.ts";
import { isLonger, isShorter } from "../../scripts/generate/runtime/validators/lengths.ts";

test.each(["", "a", "é", "日本", "😀", "a😀b", "\ud83d", "\ude00", "\ud83d\ud83d\ude00", "👩‍👩‍👧"])(
  "a text has the length that Ajv gives it: %j",
  (text) => {
    for (let limit = 0; limit < 12; limit++) {
      expect([limit, isLonger(text, limit)]).toEqual([limit, ajvLength(text) > limit]);
      expect([limit, isShorter(text, limit)]).toEqual([limit, ajvLength(text) < limit]);
    }
  },
);

test("faults of several parts are one list, in their order", () => {
  const faults = ["a", "b", "c"].map((keyword) => ({ instancePath: "", schemaPath: "", keyword, params: {} }));
  const found = join(join(null, faults.slice(0, 1)), faults.slice(1));
  expect(found).toEqual(faults);
});

const values = [
  null,
  0,
  1,
  "",
  "1",
  true,
  [],
  [1],
  [1, 2],
  [2, 1],
  {},
  { a: 1 },
  { a: 1, b: [{}] },
  { b: [{}], a: 1 },
  { a: undefined },
];
// If it is loaded as an ES module, its default export is the function itself, in contrast to its types.
const sameForAjv = ajvEqual as unknown as (a: unknown, b: unknown) => boolean;
test.each(values.map((value) => ({ value })))(
  "two values are equal for the validators if they are for Ajv: %j",
  ({ value }) => {
    for (const other of values.map((one) => structuredClone(one))) {
      expect(equal(value, other), JSON.stringify(other)).toBe(sameForAjv(value, other));
    }
  },
);
