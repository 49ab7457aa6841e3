import { expect, it, vi } from "vitest";
import { idLike, newBareId, newId } from "#kit/ids.ts";

const NOW = Date.UTC(2026, 10, 21, 8);

it("creates ids of a prefix and 26 characters of Crockford's base 32", () => {
  for (const prefix of ["msg", "turn", "evt", "dlv", "key", "req"] as const) {
    expect(newId(prefix, NOW)).toMatch(new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`));
  }
  expect(newBareId(NOW)).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
});

it("creates complete ids at any time, also the first one of a process", async () => {
  vi.resetModules();
  const { newId } = await import("#kit/ids.ts");
  for (const time of [0, 1, 2 ** 20 - 1, 2 ** 32, 2 ** 40 + 12_345, 2 ** 48 - 1]) {
    expect(newId("turn", time)).toHaveLength(31);
    expect(newId("turn", time)).toHaveLength(31);
  }
});

it("creates ids that sort by time as text", () => {
  const times = [
    0,
    1,
    31,
    32,
    1_023,
    1_024,
    2 ** 20 - 1,
    2 ** 20,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    NOW,
    NOW + 1,
    2 ** 48 - 1,
  ];
  const ids = times.map((time) => newId("turn", time));
  expect([...ids].sort()).toEqual(ids);
  const backwards = [...times].reverse().map((time) => newId("turn", time));
  expect([...backwards].sort().reverse()).toEqual(backwards);
});

it("puts the time into an id: the first ten characters are the millisecond", () => {
  const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  for (const time of [0, 1, NOW, NOW + 999, 2 ** 48 - 1]) {
    const digits = [...newId("msg", time).slice(4, 14)].map((letter) => alphabet.indexOf(letter));
    expect(digits.reduce((sum, digit) => sum * 32 + digit, 0)).toBe(time);
  }
});

it("creates no id twice, also within a millisecond", () => {
  const ids = new Set(Array.from({ length: 100_000 }, () => newId("turn", NOW)));
  expect(ids.size).toBe(100_000);
});

it("creates related ids for one request, and a new one if the request's own id is not valid", () => {
  const requestId = newId("req", 1_000);
  expect(idLike("turn", requestId, 2_000)).toBe(`turn${requestId.slice(3)}`);
  for (const other of ["turn_1", "", "dlv", `${requestId}0`]) {
    const id = idLike("turn", other, 2_000);
    expect(id).toMatch(/^turn_[0-9A-Z]{26}$/);
    expect(id.slice(5, 15)).toBe(newId("msg", 2_000).slice(4, 14));
  }
});
