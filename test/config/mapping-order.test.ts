import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { compileMapping, matchMapping } from "#core/mappings.ts";
import { good, load, warned, withSections } from "./configs.ts";
import { rule, rules } from "./mappings.ts";

const COMPILED = {
  name: "x",
  message: "x",
  agent: "main",
  session: undefined,
  model: undefined,
  channel: undefined,
  delivery: "none",
  verify: undefined,
} as const;

describe("a mapping that another one hides", () => {
  const wide = rule({ match: { "body.v": ["1", "2"] } });
  const hidden = (reached = "/hooks") =>
    `webhooks.mappings.late is never tried at ${reached}: early, before it, matches every request that it matches; it is reached at ${reached}/late alone. Put it first if it is meant to be tried.`;

  test.each([
    [rule(), rule({ match: { "body.v": "1" } })],
    [rule(), rule()],
    [wide, rule({ match: { "body.v": 1, "headers.x-a": "b" } })],
    [rule({ match: { "headers.X-A": "b" } }), rule({ match: { "headers.x-a": "b", "body.v": true } })],
  ])("%j before %j is warned of", async (early, late) => {
    expect(await warned(rules({ early, late }))).toEqual([hidden()]);
    expect(await warned(rules({ early, late }, { path: "/in/x" }))).toEqual([hidden("/in/x")]);
  });

  test.each([
    [wide, rule({ match: { "body.v": ["1", "3"] } })],
    [wide, rule({ match: { "body.w": "1" } })],
    [wide, rule()],
    [rule({ match: { "body.v": "1", "body.w": "1" } }), rule({ match: { "body.v": "1" } })],
    [rule({ verify: { type: "github", secret: good(2) } }), rule()],
    [rule(), rule({ verify: { type: "github", secret: good(2) } })],
  ])("%j before %j is not", async (early, late) => {
    expect(await warned(rules({ early, late }))).toEqual([]);
  });

  it("never matches what the one before it does not", async () => {
    const value = fc.constantFrom("1", "2", "3");
    const place = fc.constantFrom("body.a", "body.b", "headers.x-c", "headers.X-C");
    const match = fc.dictionary(place, fc.array(value, { minLength: 1, maxLength: 2 }), { maxKeys: 3 });
    const body = fc.record({ a: value, b: value }, { requiredKeys: [] });
    const seen = { hidden: 0, free: 0 };
    await fc.assert(
      fc.asyncProperty(match, match, fc.array(fc.tuple(body, value), { minLength: 5 }), async (early, late, sent) => {
        fc.pre(![early, late].some((pairs) => "headers.x-c" in pairs && "headers.X-C" in pairs));
        const compiled = [early, late].map((pairs) => compileMapping({ ...COMPILED, match: pairs }));
        const warnings = await warned(rules({ early: rule({ match: early }), late: rule({ match: late }) }));
        seen[warnings.length > 0 ? "hidden" : "free"]++;
        if (warnings.length === 0) return;
        for (const [of, c] of sent) {
          const [first, second] = compiled.map((each) => !matchMapping(each, { body: of, headers: { "x-c": c } }));
          if (second) expect(first).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
    expect(seen.hidden).toBeGreaterThan(0);
    expect(seen.free).toBeGreaterThan(0);
  });
});

test("the order of the file is the order in which they are tried", async () => {
  const names = ["zebra", "alpha", "mid-2", "mid-10", "a1"];
  const mappings = Object.fromEntries(names.map((name, n) => [name, rule({ match: { "body.v": n } })]));
  expect(Object.keys((await load(withSections(rules(mappings)))).config.webhooks.mappings)).toEqual(names);
});
