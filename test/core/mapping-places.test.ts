import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { fillPlaces, groupKeyOf, type Places, type PlaceTemplates } from "#core/mapping-places.ts";
import { parseTemplate } from "#kit/mapping-template.ts";

function places(texts: Partial<Record<keyof PlaceTemplates, string>>, body: unknown, secret?: string): Places {
  const templates = { session: undefined, key: undefined, to: undefined, thread: undefined };
  const parsed = Object.entries(texts).map(([name, text]) => [name, parseTemplate(text)]);
  const hide = (text: string) => (secret === undefined ? text : text.replaceAll(secret, "[hidden]"));
  return fillPlaces({ ...templates, ...Object.fromEntries(parsed) }, { headers: {}, body }, hide);
}
function sessionOf(session: string, body: unknown) {
  return places({ session }, body).session;
}

/** Any text, also with lone surrogates, of any length. */
const hostile = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 400 }),
  fc.string({ unit: fc.constantFrom(..."az09._-~:/\n\u0000é😀\ud800"), minLength: 1, maxLength: 120 }),
  fc.string({ unit: fc.constantFrom("~", "2", "f", "a"), minLength: 1, maxLength: 80 }),
);
function body(a: unknown, b?: unknown) {
  return { a, b };
}

describe("a session", () => {
  test.each([
    ["letters, digits, `.`, `_` and `-` stay", "Ab.9_x-1", "webhook:pr-Ab.9_x-1"],
    ["a slash is its byte in hex", "acme/site", "webhook:pr-acme~2fsite"],
    ["a character outside of ASCII is its bytes in UTF-8", "é😀", "webhook:pr-~c3a9~f09f9880"],
    ["a tilde is encoded, too", "~2f", "webhook:pr-~7e2f"],
    ["a number is its JSON", 17, "webhook:pr-17"],
    ["false is a value", false, "webhook:pr-false"],
    ["a lone surrogate has a form of its own", "\ud800", "webhook:pr-~ud800"],
  ])("%s", (_, value, session) => {
    expect(sessionOf("webhook:pr-{body.a}", body(value))).toBe(session);
  });

  it("cuts a long value, and adds a hash of the whole value", () => {
    const session = sessionOf("webhook:x{body.a}", body("y".repeat(65)));
    expect(session).toMatch(/^webhook:xy{40}~~[0-9a-f]{16}$/);
    expect(sessionOf("webhook:x{body.a}", body("y".repeat(64)))).toBe(`webhook:x${"y".repeat(64)}`);
  });

  it("never leaves its prefix, has only ASCII and at most 256 characters, whatever the body contains", () => {
    const templates = ["webhook:pr-{body.a}", "webhook:pr-{body.a}:{body.b}/{body.a}{body.b}x{body.a}"];
    fc.assert(
      fc.property(hostile, hostile, fc.constantFrom(...templates), (a, b, template) => {
        const session = sessionOf(template, body(a, b)) ?? "";
        expect(session.startsWith("webhook:pr-")).toBe(true);
        expect(session.length).toBeLessThanOrEqual(256);
        expect(session.slice("webhook:pr-".length)).toMatch(/^[A-Za-z0-9._~:/-]+$/);
      }),
      { numRuns: 2_000 },
    );
  });

  it("is a different one for different values", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, hostile, (a, b, c, d) => {
        for (const template of ["webhook:x{body.a}", "webhook:x{body.a}:{body.b}"]) {
          const [one, other] = [sessionOf(template, body(a, b)), sessionOf(template, body(c, d))];
          const isSame = a === c && (b === d || !template.includes("body.b"));
          expect(one === other).toBe(isSame);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("is a new one if a value is missing or empty, and the place is named", () => {
    for (const value of [undefined, null, ""]) {
      const { session, lacks } = places({ session: "webhook:x{body.b}-{body.a}" }, body(value, "b"));
      expect([session, lacks]).toEqual([undefined, [{ field: "session", without: ["body.a"] }]]);
    }
  });

  it("takes the first place that has a value", () => {
    const template = "webhook:x{body.a|body.b}";
    expect(sessionOf(template, body("", "second"))).toBe("webhook:xsecond");
    expect(sessionOf(template, body("first", "second"))).toBe("webhook:xfirst");
    expect(places({ session: template }, {}).lacks).toEqual([{ field: "session", without: ["body.a|body.b"] }]);
  });

  it("has a hash in the place of a value that contains a secret", () => {
    const { session } = places({ session: "webhook:x{body.a}" }, body("my s3cr3t/value"), "s3cr3t/value");
    expect(session).toMatch(/^webhook:x~~[0-9a-f]{16}$/);
  });

  it("without a placeholder is used as written", () => {
    expect(sessionOf("webhook:all of them", body("x"))).toBe("webhook:all of them");
  });
});

describe("a key", () => {
  it("is the text of its values, and undefined if one is missing", () => {
    const key = "{body.a}/{body.b}";
    expect(places({ key }, body("x y", 2)).key).toBe("x y/2");
    expect(places({ key }, body("x"))).toMatchObject({
      key: undefined,
      lacks: [{ field: "coalesce.key", without: ["body.b"] }],
    });
  });

  it("merges only requests with the same values, whatever stands between them", () => {
    const key = "{body.a}:{body.b}";
    const [one, other] = [places({ key }, body("x", "y:z")), places({ key }, body("x:y", "z"))];
    expect([one.key, other.key]).toEqual(["x:y:z", "x:y:z"]);
    expect(one.mergedBy).not.toBe(other.mergedBy);
    const templates = [key, "{body.a}{body.b}", '{body.a}","{body.b}'];
    fc.assert(
      fc.property(hostile, hostile, hostile, hostile, fc.constantFrom(...templates), (a, b, c, d, template) => {
        const [left, right] = [places({ key: template }, body(a, b)), places({ key: template }, body(c, d))];
        expect(left.mergedBy === right.mergedBy).toBe(a === c && b === d);
      }),
      { numRuns: 2_000 },
    );
  });

  it("has a bounded name in the store, different for each mapping, agent, key, session and address", () => {
    const named = (mergedBy: string, more: Partial<Places> = {}): Places => ({ ...places({}, {}), mergedBy, ...more });
    const names = [
      groupKeyOf("a", "main", named("k")),
      groupKeyOf("b", "main", named("k")),
      groupKeyOf("a", "other", named("k")),
      groupKeyOf("a", "main", named("K")),
      groupKeyOf("a", "main", named("k", { session: "webhook:a" })),
      groupKeyOf("a", "main", named("k", { to: "webhook:a" })),
    ];
    expect(new Set(names).size).toBe(names.length);
    expect(groupKeyOf("m".repeat(64), "x".repeat(64), named("k".repeat(100_000))).length).toBeLessThanOrEqual(256);
  });
});

describe("an address", () => {
  const thread = "{body.a}";

  it("is the text of its values", () => {
    expect(places({ to: "{body.b}", thread }, body("1700000000.000100", "C1"))).toEqual({
      session: undefined,
      key: undefined,
      mergedBy: undefined,
      to: "C1",
      thread: "1700000000.000100",
      lacks: [],
    });
  });

  test.each([undefined, "x".repeat(257)])("without a usable `to` has no thread, which is in another place", (to) => {
    expect(places({ to: "{body.b}", thread }, body("1700000000.000100", to))).toMatchObject({
      to: undefined,
      thread: undefined,
      lacks: [{ field: "to" }],
    });
  });

  test.each([
    ["too-long", "x".repeat(257)],
    ["control-characters", "C1\nC2"],
    ["control-characters", "C1\ud800"],
    ["secret", "a-secret"],
  ] as const)("is not used if it is %s", (reason, value) => {
    expect(places({ thread }, body(value), "a-secret")).toMatchObject({
      thread: undefined,
      lacks: [{ field: "thread", reason }],
    });
  });

  it("is not used if a value is missing", () => {
    expect(places({ to: "C-{body.a}" }, {})).toMatchObject({
      to: undefined,
      lacks: [{ field: "to", without: ["body.a"] }],
    });
  });
});
