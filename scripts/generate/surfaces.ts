import type { JsonObject } from "./json.ts";
import type { Operation } from "./operations.ts";
import { header, type Output } from "./output.ts";
import type { Push } from "./push-types.ts";
import type { Method } from "./rpc-types.ts";
import { refTo, schemasIn, shapeOf } from "./schema.ts";
import { type Part, printValidators } from "./validators.ts";

/** Operations of REST whose bodies are validated by a separate validator before the contract's, because they are called most often. */
const HOT = new Set(["chat.send"]);

const asReceived = { defaults: true, all: false };

function print(name: string, spec: string, shapes: JsonObject, parts: Part[]): Output {
  const { js, dts } = printValidators(header(spec), shapes, parts);
  return { [`validators/${name}.js`]: js, [`validators/${name}.d.ts`]: dts };
}

export function httpValidators(shapes: JsonObject, operations: Operation[]): Output {
  const bodies = (mine: Operation[]): Part["exports"] => [
    {
      name: "bodies",
      about: "What is sent, by operation; fills in defaults.",
      schemas: Object.fromEntries(mine.flatMap(({ id, body }) => (body === null ? [] : [[id, body.schema]]))),
    },
  ];
  const hooks = operations.filter(({ surface }) => surface === "hooks");
  const openai = operations.filter(({ surface }) => surface === "openai");
  const hot = operations.filter(({ id }) => HOT.has(id));
  return {
    ...print("rest-bodies", "openapi.yaml", shapes, [{ ...asReceived, exports: bodies(hot) }]),
    ...print("hooks", "openapi.yaml", shapes, [{ ...asReceived, known: true, exports: bodies(hooks) }]),
    ...print("openai", "openapi.yaml", shapes, [{ ...asReceived, all: true, exports: bodies(openai) }]),
  };
}

export function rpcValidators(shapes: JsonObject, methods: Method[]): Output {
  return print("rpc", "openrpc.json", shapes, [
    {
      ...asReceived,
      known: true,
      exports: [
        {
          name: "params",
          about: "What is sent, by method; fills in defaults.",
          schemas: Object.fromEntries(methods.map(({ name, params }) => [name, params])),
        },
      ],
    },
  ]);
}

/** The calls that only a WebSocket accepts. */
export function socketCallValidators(shapes: JsonObject, calls: Push[]): Output {
  return print("socket-calls", "pushes.yaml", shapes, [
    {
      defaults: false,
      all: false,
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
}

/** One validator for the complete configuration, and one for each kind of named object: `Agent` is `agent`. */
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
