import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { rows, type Shape } from "./rows.ts";
import {
  entriesOf,
  fieldOf,
  get,
  isFields,
  itemsOf,
  keysOf,
  type Node,
  readSpec,
  text,
  typesOf,
  whole,
} from "./spec.ts";

const openapi = readSpec("openapi.yaml");
const openrpc = readSpec("openrpc.json");
const methods = entriesOf(get(openrpc, "methods"));

function operationOf(operation: string): Node | undefined {
  const [method = "", path = ""] = operation.split(" ");
  return get(openapi, "paths", path, method.toLowerCase());
}
function methodOf(name: string) {
  return methods.find((method) => text(get(method, "name")) === name);
}
function json(...at: Parameters<typeof get>) {
  return get(get(...at), "content", "application/json", "schema");
}

/** A field that may be inside others: `error.data.detail`. */
function deepFieldOf(schema: Node | undefined, path: string): { field: Node | undefined; required: boolean } {
  const [name = "", ...rest] = path.split(".");
  if (rest.length > 0) return deepFieldOf(fieldOf(schema, name), rest.join("."));
  const required = get(schema, "required")?.value;
  return { field: fieldOf(schema, name), required: Array.isArray(required) && required.includes(name) };
}

/** A key of the configuration: `a.b`, `a[].b`, `a.*.b`. */
function keyOf(path: string): Node | undefined {
  return path
    .replaceAll("[]", ".[]")
    .split(".")
    .reduce<Node | undefined>((at, key) => {
      if (key === "[]") return itemsOf(at);
      return key === "*" ? get(at, "additionalProperties") : fieldOf(at, key);
    }, readSpec("config.schema.yaml"));
}

const ajv = new Ajv2020({ strict: false });

function expectShape(
  schema: Node | undefined,
  { type, items, accepts = [], refuses = [], ...row }: Shape,
  what: string,
) {
  if (schema === undefined) throw new Error(`the specs have no ${what}`);
  expect(typesOf(schema), `the types of ${what}`).toContain(type);
  if (items !== undefined) expect(typesOf(itemsOf(schema)), `the types of the entries of ${what}`).toContain(items);
  if ("default" in row) expect(get(schema, "default")?.value, `the default of ${what}`).toEqual(row.default);
  const validate = ajv.compile(whole(schema) as object);
  for (const value of accepts) expect(validate(value), `${what} takes ${JSON.stringify(value)}`).toBe(true);
  for (const value of refuses) expect(validate(value), `${what} takes ${JSON.stringify(value)}`).toBe(false);
}

describe("REST and webhooks", () => {
  test.each(rows.operations)("$operation is an operation", ({ operation, media }) => {
    const found = operationOf(operation);
    expect(found, `the specs have no ${operation}`).toBeDefined();
    expect(keysOf(get(found, "requestBody", "content"))).toEqual(media === undefined ? [] : [media]);
  });

  test.each(rows.bodyFields)("$operation accepts $field", ({ operation, field, ...shape }) => {
    const body = json(operationOf(operation), "requestBody");
    expectShape(fieldOf(body, field), shape, `${field} in the body of ${operation}`);
  });

  test.each(rows.replyFields)("$operation answers $status with $field", ({ operation, status, field, ...shape }) => {
    const { field: found, required } = deepFieldOf(json(operationOf(operation), "responses", String(status)), field);
    expectShape(found, shape, `${field} in the answer of ${operation}`);
    expect(required, `${field} is always in the answer of ${operation}`).toBe(true);
  });

  test.each(rows.statuses)("$operation may answer $status", ({ operation, status, errors = [] }) => {
    const found = operationOf(operation);
    expect(keysOf(get(found, "responses")), `the statuses of ${operation}`).toContain(String(status));
    const named = get(found, "x-errors")?.value;
    for (const error of errors) {
      expect(named, `the errors of ${operation}`).toContain(error);
      expect(get(readSpec("errors.yaml"), "errors", error, "status")?.value, `the status of ${error}`).toBe(status);
    }
  });

  test.each(rows.tokens)("$operation accepts a token as $as", ({ operation, as }) => {
    const schemes = entriesOf(get(operationOf(operation), "security"))
      .flatMap(keysOf)
      .map((name) => get(openapi, "components", "securitySchemes", name)?.value)
      .filter(isFields);
    const wanted = as === "bearer" ? { type: "http", scheme: as } : { type: "apiKey", in: "header", name: as };
    expect(schemes, `the ways to authenticate for ${operation}`).toContainEqual(expect.objectContaining(wanted));
  });
});

describe("RPC", () => {
  test.each(rows.rpcPaths)("$path is in $file", ({ file, path }) => {
    const spec = readSpec(file);
    const channels = keysOf(get(spec, "channels")).map((name) => text(get(spec, "channels", name, "address")));
    const servers = entriesOf(get(spec, "servers")).map((server) => text(get(server, "url")));
    expect([...channels, ...servers].some((address) => address.replace(/^\$?\{\w+\}/, "") === path)).toBe(true);
  });

  test.each(rows.envelopes)("$shape has $field", ({ shape, field, ...row }) => {
    const { field: found, required } = deepFieldOf(get(readSpec("schemas/envelope.yaml"), shape), field);
    expectShape(found, row, `${field} in ${shape}`);
    if (row.required) expect(required, `${field} is required in ${shape}`).toBe(true);
  });

  test("has exactly the methods of the interface, budget.list and those of schedules", () => {
    const names = rows.methods.map(({ method }) => method);
    const schedules = ["schedule.list", "schedule.run", "schedule.pause", "schedule.resume"];
    expect(methods.map((method) => text(get(method, "name")))).toEqual([...names, "budget.list", ...schedules]);
  });

  test("agent.list requires no params", () => {
    expect(
      entriesOf(get(methodOf("agent.list"), "params")).map((param) => get(param, "required")?.value),
    ).not.toContain(true);
  });

  test.each(rows.params)("$method accepts $param", ({ method, param, ...shape }) => {
    const found = entriesOf(get(methodOf(method), "params")).find((one) => text(get(one, "name")) === param);
    expectShape(get(found, "schema"), shape, `${param} among the params of ${method}`);
    if (shape.required) expect(get(found, "required")?.value, `${param} is required by ${method}`).toBe(true);
  });

  test.each(rows.results)("$method answers with $field", ({ method, field, ...shape }) => {
    const { field: found, required } = deepFieldOf(get(methodOf(method), "result", "schema"), field);
    expectShape(found, shape, `${field} in the result of ${method}`);
    expect(required, `${field} is always in the result of ${method}`).toBe(true);
  });

  test.each(rows.pushes)("$push is pushed when $because", ({ push }) => {
    expect(keysOf(get(readSpec("pushes.yaml"), "components", "messages"))).toContain(push);
  });
});

describe("configuration", () => {
  test.each(rows.config)("has $key", ({ key, ...shape }) => expectShape(keyOf(key), shape, `key ${key}`));
});

describe("errors", () => {
  test.each(rows.errors)("$error is in the table", ({ error, code, status, methods: wanted = [] }) => {
    const row = get(readSpec("errors.yaml"), "errors", error)?.value;
    expect(row, `specs/errors.yaml has no ${error}`).toBeDefined();
    if (code !== undefined) expect(row).toHaveProperty("code", code);
    if (status !== undefined) expect(row).toHaveProperty("status", status);
    const names = wanted === "all" ? rows.methods.map(({ method }) => method) : wanted;
    for (const name of names) expect(get(methodOf(name), "x-errors")?.value, `the errors of ${name}`).toContain(error);
  });
});
