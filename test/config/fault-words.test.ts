// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import bundled from "#generated/config.schema.json" with { type: "json" };
import { refusal, refusedOrWarned } from "./configs.ts";

type Row = { sections: string; messages: string[] };

/** Kinds of faults of a configuration, each with its messages on the lines below it; without messages it is accepted. */
const rows = readFileSync(join(import.meta.dirname, "faults.txt"), "utf8")
  .trimEnd()
  .split(/\n(?! )/)
  .map((row): Row => {
    const [sections = "", ...messages] = row.split("\n");
    return { sections, messages: messages.map((message) => message.trim()) };
  });

describe("the errors for", () => {
  test.each(rows)("$sections", async ({ sections, messages }) => {
    expect(await refusedOrWarned(parse(sections))).toEqual(messages);
  });

  test.each([
    [
      "{ agents: {} }",
      '1:11: agents must not be empty: add at least one, for example `{ main: { backend: "echo" } }`.',
    ],
    [
      "{ agents: { main: { backend: echo } } }",
      "1:30: the file is not JSON5: this text has no quotes and was not expected: put it in quotes, or look for a missing comma, quote or bracket before it.",
    ],
  ])("the text %j", async (text, said) => {
    expect(await refusal(text)).toEqual([`gateway.json5:${said}`]);
  });
});

type Schema = { [key: string]: unknown };

const schemas: Schema[] = [];
function visit(node: unknown): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) schemas.push(node as Schema);
  for (const [key, inner] of Object.entries(node)) if (key !== "examples" && key !== "default") visit(inner);
}
visit(bundled);

test("every pattern of the schema has a description", () => {
  const patterns = schemas.filter(({ pattern }) => pattern !== undefined);
  expect(patterns.length).toBeGreaterThan(10);
  const silent = patterns.filter(({ patternErrorMessage }) => !String(patternErrorMessage).startsWith("must be "));
  expect(silent).toEqual([]);
});

test("every required key has an example", () => {
  const shared = bundled.$defs as Record<string, Schema>;
  const hasExample = (schema: Schema): boolean =>
    schema.examples !== undefined ||
    schema.enum !== undefined ||
    schema.const !== undefined ||
    (typeof schema.$ref === "string" && hasExample(refersTo(schema.$ref)));
  const refersTo = (ref: string): Schema => shared[ref.replace("#/$defs/", "").split("/")[0] as string] ?? {};
  const without = schemas.flatMap(({ properties, required }) =>
    ((required ?? []) as string[]).filter((key) => !hasExample((properties as Record<string, Schema>)[key] ?? {})),
  );
  expect(without).toEqual([]);
});
