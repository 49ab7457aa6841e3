import { describe, expect, it } from "vitest";
import { acceptsMore, fieldsOf, paramsOf } from "#console/lib/schema-form.ts";

const schema = {
  type: "object",
  required: ["service", "environment", "tags"],
  additionalProperties: false,
  properties: {
    retries: { type: "integer", default: 3, minimum: 0, maximum: 10 },
    service: { type: "string", title: "Service", description: "Its name.", minLength: 2, examples: ["billing"] },
    environment: { enum: ["staging", "production"] },
    share: { type: ["number", "null"] },
    force: { type: "boolean", default: false },
    notes: { type: "string", maxLength: 2_000 },
    tags: { type: "array", items: { type: "string" } },
    version: { const: 2 },
  },
};

const fields = fieldsOf(schema);
function fieldOf(name: string) {
  return fields.find((field) => field.name === name);
}

describe("a form of a JSON Schema", () => {
  it("has the required fields first, and otherwise the order of the schema", () => {
    expect(fields.map(({ name }) => name)).toEqual([
      "service",
      "environment",
      "tags",
      "retries",
      "share",
      "force",
      "notes",
      "version",
    ]);
  });

  it("chooses a field by the type", () => {
    expect(Object.fromEntries(fields.map(({ name, kind }) => [name, kind]))).toEqual({
      service: "text",
      environment: "choice",
      tags: "json",
      retries: "integer",
      share: "number",
      force: "choice",
      notes: "long",
      version: "choice",
    });
    expect(fieldOf("force")?.options).toEqual(["true", "false"]);
  });

  it("shows titles, defaults, examples and limits", () => {
    expect(fieldOf("service")).toMatchObject({
      word: "Service",
      placeholder: "billing",
      limits: "at least 2 characters",
    });
    expect(fieldOf("retries")).toMatchObject({ initial: "3", limits: "at least 0, at most 10" });
  });

  it("reads the typed values, and omits empty optional ones", () => {
    const values = { service: "billing", environment: '"production"', tags: '["a"]', retries: "", share: "0.5" };
    expect(paramsOf(fields, values)).toEqual({
      params: { service: "billing", environment: "production", tags: ["a"], share: 0.5, force: false },
    });
  });

  it("reports errors by field", () => {
    const values = { environment: '"staging"', tags: "[", retries: "1.5", share: "much" };
    expect(paramsOf(fields, values)).toEqual({
      faults: {
        service: "Required.",
        tags: "Invalid JSON.",
        retries: "Must be a whole number.",
        share: "Must be a number.",
      },
    });
  });

  it("sets the only possible value of a required field", () => {
    expect(fieldsOf({ required: ["kind"], properties: { kind: { const: "a" } } })[0]?.initial).toBe('"a"');
  });

  it("accepts schemas that are not objects", () => {
    expect(fieldsOf({ properties: { odd: true } })[0]?.kind).toBe("json");
    expect(fieldsOf({ properties: 7, required: 7 })).toEqual([]);
    expect([acceptsMore(schema), acceptsMore({})]).toEqual([false, true]);
  });

  it("has a field that is named like the prototype", () => {
    const [field] = fieldsOf(JSON.parse('{"properties":{"__proto__":{"type":"string"}}}'));
    const read = paramsOf(field ? [field] : [], { ["__proto__"]: "x" });
    expect("params" in read && JSON.stringify(read.params)).toBe('{"__proto__":"x"}');
  });
});
