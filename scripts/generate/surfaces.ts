import type { ErrorRows } from "./errors.ts";
import type { JsonObject } from "./json.ts";
import type { Operation } from "./operations.ts";
import { header, type Output } from "./output.ts";
import type { Push } from "./push-types.ts";
import type { Method } from "./rpc-types.ts";
import { refTo, type Schema, schemasIn, shapeOf } from "./schema.ts";
import { SpecError } from "./spec-files.ts";
import { type Part, printValidators } from "./validators.ts";

/** Operations of REST whose bodies are held to a validator of their own before the contract's: those that are called all the time. */
const HOT = new Set(["chat.send"]);

const asSent = { defaults: false, all: false };
const asReceived = { defaults: true, all: false };

const print = (name: string, spec: string, shapes: JsonObject, parts: Part[]): Output => {
  const { js, dts } = printValidators(header(spec), shapes, parts);
  return { [`validators/${name}.js`]: js, [`validators/${name}.d.ts`]: dts };
};

export function httpValidators(shapes: JsonObject, operations: Operation[]): Output {
  const answers = (mine: Operation[]) =>
    Object.fromEntries(
      mine.flatMap(({ id, answers }) => answers.map(({ status, type, schema }) => [`${id} ${status} ${type}`, schema])),
    ) as Record<string, Schema>;
  const bodies = (mine: Operation[]) =>
    Object.fromEntries(mine.flatMap(({ id, body }) => (body === null ? [] : [[id, body.schema]])));
  const hooks = operations.filter(({ surface }) => surface === "hooks");
  const openai = operations.filter(({ surface }) => surface === "openai");
  const others = operations.filter(({ surface }) => surface !== "hooks" && surface !== "openai");
  const events = eventOf(others);
  if (shapes.Problem === undefined) throw new SpecError("specs/openapi.yaml", "no shape is called Problem");
  const replies = "Every body that an answer can have, by operation, status and media type.";
  const sent = "What is sent, by operation; fills in defaults.";
  return {
    ...print("rest", "openapi.yaml", shapes, [
      {
        ...asSent,
        exports: [
          { name: "replies", about: replies, schemas: answers(others) },
          { name: "events", about: "One event of a stream.", schemas: refTo(events), single: true },
          { name: "problem", about: "What every refusal holds.", schemas: refTo("Problem"), single: true },
        ],
      },
    ]),
    ...print("rest-bodies", "openapi.yaml", shapes, [
      {
        ...asReceived,
        exports: [{ name: "bodies", about: sent, schemas: bodies(others.filter(({ id }) => HOT.has(id))) }],
      },
    ]),
    ...print("hooks", "openapi.yaml", shapes, [
      {
        ...asReceived,
        known: true,
        exports: [{ name: "bodies", about: sent, schemas: bodies(hooks) }],
      },
      { ...asSent, exports: [{ name: "replies", about: replies, schemas: answers(hooks) }] },
    ]),
    // What a request is held to apart from what the tests hold answers to: a gateway loads the first alone.
    ...print("openai", "openapi.yaml", shapes, [
      { ...asReceived, all: true, exports: [{ name: "bodies", about: sent, schemas: bodies(openai) }] },
    ]),
    ...print("openai-replies", "openapi.yaml", shapes, [
      {
        ...asSent,
        exports: [
          { name: "replies", about: replies, schemas: answers(openai) },
          ...(openai.length > 0
            ? [
                {
                  name: "events",
                  about: "One event of a stream.",
                  schemas: refTo(eventOf(openai)),
                  single: true as const,
                },
              ]
            : []),
        ],
      },
    ]),
  };
}

function eventOf(operations: Operation[]): string {
  const [event, ...more] = new Set(operations.flatMap(({ stream }) => stream ?? []));
  if (event === undefined || more.length > 0)
    throw new SpecError("specs/openapi.yaml", "all streams of a surface have one shape of event");
  return event;
}

export function rpcValidators(shapes: JsonObject, methods: Method[], errors: ErrorRows): Output {
  const byName = (part: "params" | "result") =>
    Object.fromEntries(methods.map((method) => [method.name, method[part]]));
  return print("rpc", "openrpc.json", shapes, [
    {
      ...asReceived,
      known: true,
      exports: [{ name: "params", about: "What is sent, by method; fills in defaults.", schemas: byName("params") }],
    },
    {
      ...asSent,
      exports: [
        { name: "results", about: "What is answered, by method.", schemas: byName("result") },
        { name: "error", about: "The `error` of a response.", schemas: errorObject(errors), single: true },
      ],
    },
  ]);
}

/** JSON-RPC's error object, with the codes and names of our table. */
function errorObject(errors: ErrorRows): JsonObject {
  const rows = Object.entries(errors).filter(([, { code }]) => code !== null);
  return {
    type: "object",
    additionalProperties: false,
    required: ["code", "message"],
    properties: {
      code: { type: "integer", enum: [...new Set(rows.map(([, { code }]) => code))] },
      message: { type: "string", minLength: 1 },
      data: {
        type: "object",
        additionalProperties: false,
        required: ["name"],
        properties: {
          name: { type: "string", enum: rows.map(([name]) => name) },
          detail: { type: "string" },
          requestId: { type: "string" },
          turnId: { type: "string" },
          retryAfterMs: { type: "integer", minimum: 0 },
        },
      },
    },
  };
}

export const pushValidators = (shapes: JsonObject, pushes: Push[]): Output =>
  print("pushes", "pushes.yaml", shapes, [
    {
      ...asSent,
      exports: [
        {
          name: "pushes",
          about: "The params of each push, by its name.",
          schemas: Object.fromEntries(pushes.map(({ name, payload }) => [name, payload])),
        },
      ],
    },
  ]);

/** The calls that only a WebSocket takes: small, as the server loads them without those of the pushes. */
export const socketCallValidators = (shapes: JsonObject, calls: Push[]): Output =>
  print("socket-calls", "pushes.yaml", shapes, [
    {
      ...asSent,
      known: true,
      exports: [
        {
          name: "socketCalls",
          about: "The params of each call that only a WebSocket takes and, as `<name>.result`, what it is answered.",
          schemas: Object.fromEntries(calls.map(({ name, payload }) => [name, payload])),
        },
      ],
    },
  ]);

/** One validator for the whole, and one for each kind of thing that a person gives names to: `Agent` is `agent`. */
export function configValidators(shapes: JsonObject, root: string): Output {
  const named = new Set<string>();
  for (const shape of Object.values(shapes)) {
    for (const { additionalProperties } of schemasIn(shape)) named.add(shapeOf(additionalProperties) ?? root);
  }
  return print("config", "config.schema.yaml", shapes, [
    {
      defaults: true,
      all: true,
      exports: [root, ...[...named].filter((name) => name !== root).sort()].map((name) => ({
        name: name === root ? "config" : `${name[0]?.toLowerCase()}${name.slice(1)}`,
        about:
          name === root ? "The whole configuration; fills in defaults." : `What the schema calls ${name}, likewise.`,
        schemas: refTo(name),
        single: true as const,
      })),
    },
  ]);
}
