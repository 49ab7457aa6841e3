import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkParams, createSkills } from "#core/skills/skills.ts";

async function load(schema: string) {
  const dir = await mkdtemp(join(tmpdir(), "skill-params-"));
  await mkdir(join(dir, "quote"));
  await writeFile(join(dir, "quote/SKILL.md"), "---\nname: quote\ndescription: Quotes.\n---\nQuote.");
  await writeFile(join(dir, "quote/params.schema.json"), schema);
  const skills = createSkills();
  const { invalid, take } = await skills.read([dir]);
  take();
  await rm(dir, { recursive: true });
  return { skill: skills.find("quote"), invalid: invalid.map(({ reason }) => reason) };
}

const schema = {
  type: "object",
  additionalProperties: false,
  required: ["length"],
  properties: { length: { enum: ["short", "long"] }, pages: { type: "array", items: { type: "integer" } } },
};

describe("the params of a skill", () => {
  it.each(["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", undefined])(
    "are validated against its schema, %s",
    async ($schema) => {
      const { skill } = await load(JSON.stringify({ $schema, ...schema }));
      if (!skill) throw new Error("the skill was left out");
      expect(skill.params?.schema).toEqual({ ...($schema && { $schema }), ...schema });
      checkParams(skill, { length: "short", pages: [1] });
      expect(() => checkParams(skill, {})).toThrow("params.length is required.");
      expect(() => checkParams(skill, { length: "short", pages: [1, "b"] })).toThrow(
        "params.pages.1 must be an integer.",
      );
      expect(() => checkParams(skill, { lenght: "short" })).toThrow("params.lenght is unknown (did you mean length?).");
      expect(() => checkParams(skill, { length: "short", page: 1 })).toThrow("(did you mean pages?).");
      expect(() => checkParams(skill, { length: "mid" })).toThrow("params.length must be one of short, long.");
      expect(() => checkParams(skill, { length: "short", "a/b": 1 })).toThrow(
        "params.a~1b is unknown (there are length, pages).",
      );
    },
  );

  it.each([
    ["{", "params.schema.json is not JSON"],
    ["[]", 'params.schema.json is not a JSON Schema of an object ("type": "object")'],
    ['{"type":"string"}', 'params.schema.json is not a JSON Schema of an object ("type": "object")'],
    ['{"type":"object","properties":5}', "params.schema.json is not a JSON Schema: schema is invalid"],
    ['{"type":"object","$ref":"https://example.com/x.json"}', "params.schema.json is not a JSON Schema: can't resolve"],
    ['{"type":"object","$async":true}', "params.schema.json is not a JSON Schema: $async is not supported"],
    ['{"type":"object","$async":false}', "params.schema.json is not a JSON Schema: $async is not supported"],
    [
      '{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$async":true,"not":{"$ref":"#/$defs/b"}},"b":{}}}',
      "params.schema.json is not a JSON Schema: ",
    ],
    ['{"type":"object","$ref":"#"}', "params.schema.json is not a JSON Schema: a $ref leads to itself without end"],
    ['{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}', "a $ref leads to itself without end"],
    [`{"type":"object","title":"${"x".repeat(65536)}"}`, "params.schema.json is larger than 64 KiB"],
  ])("%.40s is not a schema, and its skill is omitted with the reason", async (text, reason) => {
    const { skill, invalid } = await load(text);
    expect(skill).toBeUndefined();
    expect(invalid[0]).toContain(reason);
  });

  const SLOW = "could not be validated in time: a pattern or another rule of the schema is too slow for this value";
  const DEEP = "could not be validated: the value is nested too deeply, or the schema refers to itself without end";
  const text = (pattern: string) => ({ properties: { a: { type: "string", pattern } } });
  const doubled = Array.from({ length: 60 }, (_, n) => [
    `d${n}`,
    { allOf: Array(2).fill({ $ref: `#/$defs/d${n + 1}` }) },
  ]);
  const attack = `${"a".repeat(40)}!`;
  it.each([
    ["a pattern", text("^(a+)+$"), { a: attack }, SLOW],
    ["a pattern that refers back", text("^(a+)+\\1$"), { a: attack }, SLOW],
    ["a pattern that looks ahead", text("^(?=a)(a|a)*$"), { a: attack }, SLOW],
    ["a pattern of names", { patternProperties: { "^(a+)+$": {} } }, { [attack]: 1 }, SLOW],
    [
      "references that double",
      { $ref: "#/$defs/d0", $defs: { ...Object.fromEntries(doubled), d60: { minProperties: 1 } } },
      {},
      SLOW,
    ],
    [
      "unique items",
      { properties: { a: { uniqueItems: true } } },
      { a: Array.from({ length: 20_000 }, (_, n) => ({ n })) },
      SLOW,
    ],
    [
      "a reference to itself",
      { properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { allOf: [{ $ref: "#/$defs/a" }] } } },
      { a: 1 },
      DEEP,
    ],
  ])("that %s would check for hours are refused soon", async (_, rules, given, words) => {
    const { skill, invalid } = await load(JSON.stringify({ type: "object", ...rules }));
    if (!skill) throw new Error(invalid[0]);
    for (let times = 0; times < 3; times++) expect(() => checkParams(skill, given)).toThrow(`params ${words}.`);
  });

  it("are validated as before after a slow check", async () => {
    const { skill } = await load(JSON.stringify({ type: "object", ...text("^(a+)+$") }));
    if (!skill) throw new Error("the skill was left out");
    for (let times = 0; times < 6; times++) expect(() => checkParams(skill, { a: attack })).toThrow(SLOW);
    checkParams(skill, { a: "aaa" });
    expect(() => checkParams(skill, { a: 1 })).toThrow("params.a must be a string.");
  });

  it.each(["toString", "constructor", "__proto__"])("may be called %s, and are absent unless given", async (name) => {
    const { skill } = await load(`{"type":"object","properties":{"${name}":{"type":"number"}},"required":["${name}"]}`);
    if (!skill) throw new Error("the skill was left out");
    expect(() => checkParams(skill, {})).toThrow(`params.${name} is required.`);
    checkParams(skill, JSON.parse(`{"${name}":5}`));
  });
});
