import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { excerptOf, type Lookup, lookUp, parseLookup, textOf } from "#kit/mapping-paths.ts";

function sound(path: string): Lookup {
  const lookup = parseLookup(path);
  if ("flaw" in lookup) throw new Error(`${path} ${lookup.flaw}`);
  return lookup;
}
function find(path: string, body: unknown, headers: Record<string, string> = {}) {
  return lookUp(sound(path), { headers, body });
}

describe("a path into a body", () => {
  const body = JSON.parse(`{
    "a": { "b": { "c": "deep" } }, "list": [{ "id": 7 }, [1, 2], "text"], "empty": "", "no": null, "off": false, "0": "zero",
    "with space": { "x": 1 }, "Ünïcode": 2, "constructor": { "name": "their own" }, "length": 5
  }`) as unknown;

  test.each([
    ["body.a.b.c", "deep"],
    ["body.list.0.id", 7],
    ["body.list.1.1", 2],
    ["body.empty", ""],
    ["body.no", null],
    ["body.off", false],
    ["body.0", "zero"],
    ["body.with space.x", 1],
    ["body.Ünïcode", 2],
    ["body.constructor.name", "their own"],
    ["body.length", 5],
  ])("%s finds the value that was sent", (path, value) => {
    expect(find(path, body)).toEqual(value);
  });

  test.each([
    "body.a.b.c.d",
    "body.a.c",
    "body.list.3",
    "body.list.-1",
    "body.list.00",
    "body.list.01",
    "body.list.1e0",
    "body.list.length",
    "body.list.map",
    "body.list.constructor",
    "body.list.2.0",
    "body.list.2.length",
    "body.no.x",
    "body.off.valueOf",
    "body.a.toString",
    "body.a.constructor",
    "body.a.hasOwnProperty",
    "body.A.b.c",
  ])("%s finds nothing", (path) => {
    expect(find(path, body)).toBeUndefined();
  });

  it("goes into a list, and finds nothing in a body that is neither a list nor an object", () => {
    expect(find("body.1.x", [0, { x: "y" }])).toBe("y");
    for (const other of ["text", 5, true, null, undefined]) {
      expect(find("body.0", other)).toBeUndefined();
      expect(find("body.length", other)).toBeUndefined();
    }
  });

  it("never reads `__proto__`, not even if the sender sent one", () => {
    expect(parseLookup("body.a.__proto__.b")).toEqual({ flaw: "can never match: `__proto__` is never read." });
    const sent = JSON.parse('{"__proto__": {"admin": "yes"}, "a": {}}') as unknown;
    expect(find("body.admin", sent)).toBeUndefined();
    expect(find("body.a.admin", sent)).toBeUndefined();
  });

  it("finds every value of a body by the keys that lead to it", () => {
    const key = fc.string({ minLength: 1, maxLength: 8 }).filter((text) => text.trim() === text && !text.includes("."));
    const steps = fc.array(fc.oneof(key, fc.nat(5)), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(steps, fc.jsonValue(), (way, value) => {
        fc.pre(!way.includes("__proto__"));
        const wrapped = way.reduceRight<unknown>((inside, step) => {
          return typeof step === "number" ? [...Array(step).fill("other"), inside] : { other: 1, [step]: inside };
        }, value);
        const sent = JSON.parse(JSON.stringify(wrapped)) as unknown;
        expect(find(`body.${way.join(".")}`, sent)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("finds only values of the JSON, whatever the path and the body", () => {
    const names = ["__proto__", "constructor", "prototype", "length", "toString", "valueOf", "at", "a", "0", "1"];
    const step = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: fc.string() });
    const leaf = fc.oneof(
      fc.string(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    );
    const { value: tree } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.array(tie("value"), { maxLength: 4 }),
        fc
          .array(fc.tuple(step, tie("value")), { maxLength: 4 })
          .map((pairs) => JSON.parse(`{${pairs.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join()}}`)),
      ),
    }));
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 5 }), tree, (way, body) => {
        const lookup = parseLookup(`body.${way.join(".")}`);
        if ("flaw" in lookup) return;
        const found = lookUp(lookup, { headers: {}, body });
        expect(["string", "number", "boolean", "object", "undefined"]).toContain(typeof found);
        if (found !== undefined) expect(JSON.stringify(body)).toContain(JSON.stringify(found));
      }),
    );
  });
});

describe("a path to a header", () => {
  it("accepts a name in any case, with dots", () => {
    const headers = { "x-github-event": "push", "x.with.dots": "yes" };
    expect(find("headers.X-GitHub-Event", null, headers)).toBe("push");
    expect(find("headers.x.With.dots", null, headers)).toBe("yes");
  });

  it("finds only headers that were sent", () => {
    for (const name of ["constructor", "__proto__", "tostring", "hasownproperty", "x-other"])
      expect(find(`headers.${name}`, null, {})).toBeUndefined();
  });

  it("joins repeated headers", () => {
    expect(lookUp(sound("headers.x-a"), { headers: { "x-a": ["1", "2"] }, body: null })).toBe("1, 2");
  });

  // deliveries.test.ts tests which names are secret.
  test.each(["authorization", "Authorization", "x-hub-signature-256", "x-api-key"])("never reads %s", (name) => {
    expect(parseLookup(`headers.${name}`)).toEqual({
      flaw: "names a header that may hold a secret: mappings never read those.",
    });
  });
});

test.each([
  ["", "is neither headers.<name> nor body.<dotted path>."],
  ["body", "is neither headers.<name> nor body.<dotted path>."],
  ["query.x", "is neither headers.<name> nor body.<dotted path>."],
  ["Body.x", "is neither headers.<name> nor body.<dotted path>."],
  [".body.x", "is neither headers.<name> nor body.<dotted path>."],
  ["body.", "has an empty step: write a key or an index between two dots."],
  ["body.a..b", "has an empty step: write a key or an index between two dots."],
  ["body.a.", "has an empty step: write a key or an index between two dots."],
  ["body. a", "has a step that begins or ends with a space."],
  ["body.a .b", "has a step that begins or ends with a space."],
  [`body${".a".repeat(65)}`, "has more than 64 steps, the maximum depth of a body."],
  ["headers.", "names a header that no request can have."],
  ["headers.x y", "names a header that no request can have."],
  ["headers.:path", "names a header that no request can have."],
  ["headers.ümlaut", "names a header that no request can have."],
])("the path %j is refused", (path, flaw) => {
  expect(parseLookup(path)).toEqual({ flaw });
});

test("the deepest path of a body is accepted", () => {
  expect(parseLookup(`body${".a".repeat(64)}`)).toMatchObject({ in: "body" });
});

describe("a value as text", () => {
  test.each([
    ['"text"', "text"],
    ['""', ""],
    ["100", "100"],
    ["1e2", "100"],
    ["1.50", "1.5"],
    ["-0", "0"],
    ["1e21", "1e+21"],
    ["9007199254740993", "9007199254740992"],
    ["true", "true"],
    ["false", "false"],
    ['{ "a": [1, "x"] }', '{"a":[1,"x"]}'],
    ["[]", "[]"],
    ["null", undefined],
    ["1e400", undefined],
  ])("%s is %j", (json, text) => {
    expect(textOf(JSON.parse(json))).toBe(text);
  });

  it("is undefined for a missing value", () => {
    expect(textOf(undefined)).toBeUndefined();
  });
});

describe("an excerpt", () => {
  test.each([
    [undefined, null],
    [null, null],
    ["x".repeat(200), "x".repeat(200)],
    ["x".repeat(201), `${"x".repeat(199)}…`],
    [`${"x".repeat(198)}😀😀`, `${"x".repeat(198)}…`],
    [12.5, "12.5"],
    [[1], "[1 item]"],
    [[], "[0 items]"],
    [{ a: 1, b: { c: 2 } }, "{a, b}"],
    [{}, "{}"],
    [
      Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`k${n}`, n])),
      "{k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, …}",
    ],
  ])("of %j is %j", (value, excerpt) => {
    expect(excerptOf(value)).toBe(excerpt);
  });

  it("is short and can be written as UTF-8, whatever the value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme", maxDepth: 3 }), (value) => {
        const excerpt = excerptOf(value);
        expect(excerpt?.length ?? 0).toBeLessThanOrEqual(200);
      }),
    );
  });
});
