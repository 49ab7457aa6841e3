import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonOf } from "#observe/safe-json.ts";

const written = (value: number): string =>
  jsonOf(value, { left: 1_000, perString: 100, cut: (text, at) => text.slice(0, at) });

test("numbers are written as String writes them, also those that have thousandths", () => {
  const sorts = [fc.double({ noNaN: true, noDefaultInfinity: true }), fc.nat(2 ** 31 - 1).map((n) => n / 1000)];
  fc.assert(fc.property(fc.oneof(...sorts, fc.integer()), (value) => written(value) === String(value)));
  for (let all = 0; all < 3_000; all++)
    if (written(all / 1000) !== String(all / 1000)) expect(written(all / 1000)).toBe(all);
  for (const value of [-0, -0.001, -1.5, 1e6 + 0.001, 1e21, 0.0005, 1.0005, Number.MIN_VALUE])
    expect(written(value)).toBe(String(value));
});
