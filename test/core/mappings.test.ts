import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  type Choice,
  compileMapping,
  createMappings,
  type MappingSettings,
  matchMapping,
  tryMapping,
} from "#core/mappings.ts";

function settings(name: string, more: Partial<MappingSettings> = {}): MappingSettings {
  return {
    name,
    match: {},
    message: "said",
    agent: "main",
    session: undefined,
    model: undefined,
    channel: undefined,
    delivery: "none",
    to: undefined,
    thread: undefined,
    coalesce: undefined,
    verify: undefined,
    ...more,
  };
}
function compile(more: Partial<MappingSettings> = {}) {
  return compileMapping(settings("rule", more));
}
function all(...mappings: MappingSettings[]) {
  return {
    mappings,
    path: "/hooks",
    longestMessage: 1_000,
    recordBodies: true,
  };
}
function request(body: unknown, headers: Record<string, string> = {}) {
  return { headers, body };
}
function nameOf({ chosen }: Choice) {
  return chosen?.mapping.name;
}

describe("a mapping matches", () => {
  const push = { "headers.X-GitHub-Event": ["push"], "body.ref": ["refs/heads/main", "refs/heads/next"] };

  it("if every pair is equal, or equals one value of a list", () => {
    const mapping = compile({ match: push });
    for (const ref of ["refs/heads/main", "refs/heads/next"])
      expect(matchMapping(mapping, request({ ref, more: 1 }, { "x-github-event": "push" }))).toBeUndefined();
  });

  it("everything, if it has no conditions", () => {
    for (const body of [{}, [], null, "text", 0]) expect(matchMapping(compile(), request(body))).toBeUndefined();
  });

  test.each([
    ["a number as its JSON", "100", { v: 100 }],
    ["a number that was written otherwise", "100", JSON.parse('{"v": 1e2}')],
    ["a flag", "true", { v: true }],
    ["a text that looks like a number", "100", { v: "100" }],
    ["an empty text", "", { v: "" }],
    ["an object as its JSON", '{"a":[1]}', { v: { a: [1] } }],
    ["a list as its JSON", "[]", { v: [] }],
    ["the text null", "null", { v: "null" }],
  ])("%s", (_, expected, body) => {
    expect(matchMapping(compile({ match: { "body.v": [expected] } }), request(body))).toBeUndefined();
  });

  test.each([
    ["what is missing", "", {}],
    ["null", "null", { v: null }],
    ["null as empty", "", { v: null }],
    ["another case", "Push", { v: "push" }],
    ["space around it", "push", { v: "push " }],
    ["one of a list", "a", { v: ["a"] }],
    ["a number in another form", "1e2", { v: 100 }],
    ["a number that JSON cannot hold", "Infinity", JSON.parse('{"v": 1e400}')],
    ["half of an object", '{"a"', { v: { a: 1 } }],
    ["an object in words", "[object Object]", { v: {} }],
  ])("not %s", (_, expected, body) => {
    expect(matchMapping(compile({ match: { "body.v": [expected] } }), request(body))).toMatchObject({ path: "body.v" });
  });

  it("only the value of a body at a path", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.integer(), fc.double({ noNaN: true }), fc.boolean()),
        fc.string(),
        (value, other) => {
          const body = JSON.parse(JSON.stringify({ a: [{ v: value }] })) as { a: [{ v: unknown }] };
          const sent = body.a[0].v;
          const equal = (expected: string) =>
            matchMapping(compile({ match: { "body.a.0.v": [expected] } }), request(body)) === undefined;
          expect(equal(String(sent))).toBe(sent !== null);
          if (other !== String(sent)) expect(equal(other)).toBe(false);
        },
      ),
    );
  });

  it("or returns the first pair that failed, with the found value", () => {
    const mapping = compile({ match: { ...push, "body.size": ["1"] } });
    const miss = (body: unknown, event?: string) =>
      matchMapping(mapping, request(body, event === undefined ? {} : { "x-github-event": event }));
    expect(miss({}, "ping")).toEqual({ path: "headers.X-GitHub-Event", expected: ["push"], found: "ping" });
    expect(miss({})).toEqual({ path: "headers.X-GitHub-Event", expected: ["push"], found: null });
    expect(miss({ ref: "refs/heads/draft" }, "push")).toMatchObject({ path: "body.ref", found: "refs/heads/draft" });
    expect(miss({ ref: "refs/heads/main" }, "push")).toMatchObject({ path: "body.size", found: null });
    expect(miss({ ref: { name: "main" } }, "push")).toMatchObject({ path: "body.ref", found: "{name}" });
  });
});

describe("a pair whose name marks it as a secret", () => {
  const mapping = compile({ match: { "body.auth.verification_token": ["of-the-configuration"] } });

  it("is compared like any other", () => {
    expect(matchMapping(mapping, request({ auth: { verification_token: "of-the-configuration" } }))).toBeUndefined();
  });

  it("is never shown, neither the expected nor the found value", () => {
    const path = "body.auth.verification_token";
    for (const sent of ["guess", { a: 1 }])
      expect(matchMapping(mapping, request({ auth: { verification_token: sent } }))).toEqual({
        path,
        expected: ["[hidden]"],
        found: "[hidden]",
      });
    expect(matchMapping(mapping, request({}))).toEqual({ path, expected: ["[hidden]"], found: null });
  });
});

describe("a message", () => {
  it("is the result of the template for the request", () => {
    const mapping = compile({ message: "{body.who} did {headers.x-event}" });
    expect(tryMapping(mapping, request({ who: "ada" }, { "x-event": "push" }), 100)).toEqual({
      mapping,
      message: "ada did push",
    });
  });

  test.each(["{body.text}", " {body.text}\n{body.more}", "{body.blank}"])(
    "of %j that is empty does not match",
    (message) => {
      const trial = tryMapping(compile({ message }), request({ blank: " \n\t " }), 100);
      expect(trial).toMatchObject({ miss: { path: "message", expected: ["some text"], found: null }, tooLong: false });
    },
  );

  it("that is too long is refused, which a dry run shows", () => {
    const mappings = createMappings(all(settings("long", { message: "{body.text}" })));
    const longest = request({ text: "x".repeat(1_000) });
    expect(mappings.choose(longest).chosen?.message).toHaveLength(1_000);
    const tooLong = request({ text: "x".repeat(1_001) });
    expect(() => mappings.choose(tooLong)).toThrow(
      expect.objectContaining({
        name: "too-large",
        detail: "The message of the mapping long has more than 1000 characters.",
      }),
    );
    expect(mappings.dryRun(tooLong).trials).toMatchObject([
      { miss: { path: "message", expected: ["at most 1000 characters"], found: "more" }, tooLong: true },
    ]);
  });
});

describe("of several mappings", () => {
  const mappings = createMappings(
    all(
      settings("signed", { verify: "github" }),
      settings("first", { match: { "body.v": ["1"] } }),
      settings("silent", { match: { "body.v": ["2"] }, message: "{body.none}" }),
      settings("second", { match: { "body.v": ["1", "2"] } }),
    ),
  );

  it("the first that matches takes the request, of those without a signature", () => {
    expect(nameOf(mappings.choose(request({ v: 1 })))).toBe("first");
    expect(nameOf(mappings.choose(request({ v: 2 })))).toBe("second");
    expect(nameOf(mappings.choose(request({ v: 3 })))).toBeUndefined();
  });

  it("a named one takes the request, or none does", () => {
    expect(nameOf(mappings.choose(request({ v: 1 }), "second"))).toBe("second");
    expect(nameOf(mappings.choose(request({ v: 1 }), "signed"))).toBe("signed");
    expect(nameOf(mappings.choose(request({ v: 2 }), "first"))).toBeUndefined();
    expect(() => mappings.choose(request({}), "third")).toThrow(
      expect.objectContaining({
        name: "mapping-not-found",
        detail: expect.stringMatching(/^No mapping is named `third`\. There are `/),
      }),
    );
    expect(() => mappings.choose(request({}), "constructor")).toThrow();
  });

  it("a dry run tries each in order, and starts one without a signature unless it is named", () => {
    const { trials, starts } = mappings.dryRun(request({ v: 2 }));
    expect(trials.map((trial) => [trial.mapping.name, "message" in trial])).toEqual([
      ["signed", true],
      ["first", false],
      ["silent", false],
      ["second", true],
    ]);
    expect(starts?.name).toBe("second");
    expect(mappings.dryRun(request({ v: 2 }), "signed")).toMatchObject({ trials: [{}], starts: { name: "signed" } });
  });

  it("the timeline shows which one matched, and why the earlier ones did not", () => {
    expect(JSON.parse(mappings.noteOf(mappings.choose(request({ v: 2 }))))).toEqual({
      matched: "second",
      tried: [
        { mapping: "first", path: "body.v", expected: ["1"], found: "2" },
        { mapping: "silent", path: "message", expected: ["some text"], found: null },
      ],
      untold: 0,
    });
  });
});

describe("the timeline of a mapping", () => {
  it("is bounded, whatever the configuration and the request have", () => {
    const long = "x".repeat(10_000);
    const many = Array.from({ length: 60 }, (_, n) =>
      settings(`rule-${n}`, { match: { "body.v": Array.from({ length: 20 }, (_, m) => `${long}${m}`) } }),
    );
    const mappings = createMappings(all(...many));
    const note = mappings.noteOf(mappings.choose(request({ v: `${long}y` })));
    const { tried, untold } = JSON.parse(note) as { tried: { expected: string[]; found: string }[]; untold: number };
    expect([tried.length, untold]).toEqual([20, 40]);
    expect(tried[0]?.expected).toHaveLength(5);
    expect(tried[0]?.found).toHaveLength(200);
    expect(note.length).toBeLessThan(32_000);
  });
});

test("does not match in part with unchecked settings: they are refused", () => {
  expect(() => compile({ match: { "query.x": ["1"] } })).toThrow("query.x is neither");
  expect(() => compile({ message: "{foo}" })).toThrow("{foo} holds");
});
