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
    [`{"type":"object","title":"${"x".repeat(65536)}"}`, "params.schema.json is larger than 64 KiB"],
  ])("%.40s is not a schema, and its skill is omitted with the reason", async (text, reason) => {
    const { skill, invalid } = await load(text);
    expect(skill).toBeUndefined();
    expect(invalid[0]).toContain(reason);
  });
});
