import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { parseJson } from "#config/parse-json.ts";
import { parseYaml } from "#config/parse-yaml.ts";
import { resolveReferences } from "#config/references.ts";
import {
  blockOf,
  type Draft,
  mappingOf,
  storeDraft,
  storedDraft,
  textOf,
  whyNoMatch,
  whyNoMessage,
  whyUnreachable,
  withKey,
  withMatch,
  withMessage,
  withSession,
} from "#console/lib/mapping-draft.ts";

const EMPTY = storedDraft({ getItem: () => null });

describe("a draft of a mapping", () => {
  it("has one condition for pairs with the same place, and no empty field", () => {
    let draft = withMatch(EMPTY, "body.status", "firing");
    draft = withMatch(draft, "body.status", "resolved");
    draft = withMatch(draft, "body.status", "firing");
    draft = withMatch(draft, "headers.x-event", "alert");
    // A condition that was only added.
    draft = withMatch(draft, "", "");
    draft = withMessage(withMessage(draft, "body.status"), "body.title");
    expect(mappingOf(draft)).toEqual({
      name: "new-mapping",
      match: { "body.status": ["firing", "resolved"], "headers.x-event": "alert" },
      message: "{body.status} {body.title}",
    });
  });

  it("has a session and a burst for each value of a place, or for the values of several places", () => {
    const draft = withKey(withSession(EMPTY, "body.number"), "body.number");
    expect(mappingOf(draft)).toMatchObject({
      session: "webhook:new-mapping:{body.number}",
      coalesce: { key: "{body.number}" },
    });
    const both = withKey(withSession(withSession(draft, "body.repo"), "body.number"), "body.repo");
    expect(mappingOf(both)).toMatchObject({
      session: "webhook:new-mapping:{body.number}:{body.repo}",
      coalesce: { key: "{body.number}:{body.repo}" },
    });
    expect(withSession({ ...EMPTY, session: "webhook:pr" }, "body.number").session).toBe("webhook:pr:{body.number}");
  });

  it("has the wait and the message of a burst only with a key", () => {
    const draft: Draft = {
      ...EMPTY,
      window: "10s",
      maxWait: "1m",
      take: "all",
      to: "{body.channel}",
      thread: "{body.ts}",
    };
    expect(mappingOf(draft)).not.toHaveProperty("coalesce");
    expect(mappingOf({ ...draft, key: "{body.id}" })).toMatchObject({
      to: "{body.channel}",
      thread: "{body.ts}",
      coalesce: { key: "{body.id}", window: "10s", maxWait: "1m", take: "all" },
    });
  });

  it("compares values like the gateway", () => {
    expect([1e2, true, "a", 0.1, -0].map(textOf)).toEqual(["100", "true", "a", "0.1", "0"]);
  });

  it.each([
    [["body", "a.b"], "x", /dot/],
    [["body", "__proto__", "x"], "x", /never read/],
    [["body", ""], "x", /empty step/],
    [["body", " a"], "x", /space/],
    [["body", "n"], Number("1e400"), /number of this size/],
    [["headers", "authorization"], "x", /secret/],
    [["body", "password"], "[hidden]", /hides/],
  ])("does not accept %j", (path, value, reason) => {
    expect(whyUnreachable(path, value)).toMatch(reason);
  });

  it("uses a key with a brace or a line break in a condition only", () => {
    for (const key of ["a}b", "a{b", "$".concat("{HOME}"), "a\nb"]) {
      expect(whyUnreachable(["body", key], "x")).toBeUndefined();
      expect(whyNoMatch(["body", key], "x")).toBeUndefined();
      expect(whyNoMessage(["body", key])).toMatch(/template/);
    }
    expect(whyNoMessage(["body", "a[b]"])).toBeUndefined();
  });

  it("has no condition that the gateway would refuse for its length", () => {
    const longest = "k".repeat(507);
    expect(whyNoMatch(["body", longest], "v".repeat(1_024))).toBeUndefined();
    expect(whyNoMatch(["body", `${longest}k`], "v")).toMatch(/512/);
    expect(whyNoMatch(["body", "k"], "v".repeat(1_025))).toMatch(/1024/);
  });

  it("accepts indexes, brackets and dots of header names", () => {
    for (const path of [
      ["body", "list", 0, "a[b]"],
      ["headers", "x.dotted"],
      ["body", "constructor"],
    ])
      expect(whyUnreachable(path, "x")).toBeUndefined();
  });
});

const texts = fc.string({ unit: "binary", maxLength: 30 });
const drafts: fc.Arbitrary<Draft> = fc.record({
  name: fc.constantFrom("incident", "a-1"),
  pairs: fc.array(
    fc.record({
      place: fc.oneof(texts, fc.constantFrom("body.".concat("$", "{HOME}"), "body.$$".concat("{"), "body.a\nb")),
      value: fc.oneof(texts, fc.constantFrom("$".concat("{HOME}"), "$$".concat("{"), "\u202egnp")),
    }),
    {
      maxLength: 4,
    },
  ),
  message: fc.oneof(texts, fc.constantFrom("$".concat("{body.a} {{x}"), "'\"\\\n`")),
  session: texts,
  agent: texts,
  model: texts,
  channel: texts,
  to: texts,
  thread: texts,
  delivery: fc.constantFrom("", "announce"),
  key: texts,
  window: texts,
  maxWait: texts,
  take: fc.constantFrom("", "all"),
});

describe("the block of a draft", () => {
  test("is the same mapping after the configuration has read it, whatever its texts are", () => {
    fc.assert(
      fc.property(drafts, (draft) => {
        const { name, ...mapping } = mappingOf(draft);
        const read = parseJson("gateway.json5", `{ mappings: {\n${blockOf(draft, false)}\n} }`);
        expect(resolveReferences(read.value, {}).value).toEqual({ mappings: { [name]: mapping } });
        const indented = blockOf(draft, true).replaceAll(/^/gm, "  ");
        const { value } = parseYaml("gateway.yaml", `mappings:\n${indented}\n  other: 1\n`);
        expect(resolveReferences(value, {}).value).toEqual({ mappings: { [name]: mapping, other: 1 } });
      }),
    );
  });
});

describe("the stored draft", () => {
  const stored = (draft: Draft) => {
    const items = new Map<string, string>();
    storeDraft(draft, { setItem: (key, value) => void items.set(key, value) });
    return { text: [...items.values()].join(), draft: storedDraft({ getItem: (key) => items.get(key) ?? null }) };
  };
  it("is the draft, without values from places that are named like a secret", () => {
    const draft = withKey(withMatch(withMessage(EMPTY, "body.title"), "body.status", "firing"), "body.id");
    expect(stored({ ...draft, take: "all" }).draft).toEqual({ ...draft, take: "all" });
    expect(stored(draft).draft).toEqual(draft);
    const { text } = stored(withMatch(draft, "body.user.password", "sekrit"));
    expect(text).not.toContain("sekrit");
  });

  it.each(["", "null", "7", "[]", '{"pairs":7}', '{"pairs":[null]}', "{"])("is empty if %j is stored", (text) => {
    expect(storedDraft({ getItem: () => text })).toEqual(EMPTY);
  });
});
