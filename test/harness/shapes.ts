import { Ajv2020 } from "ajv/dist/2020.js";
import { errors } from "#generated/errors.ts";
import openapi from "#generated/openapi.json" with { type: "json" };
import openrpc from "#generated/openrpc.json" with { type: "json" };
import type { Route } from "#generated/routes.ts";
import type { Validate } from "#generated/validators/validate.ts";
import { bundle } from "../../scripts/generate/bundle.ts";
import { readPushes } from "../../scripts/generate/push-types.ts";
import { openSpecs } from "../../scripts/generate/spec-files.ts";
import { root } from "./process.ts";

// Everything that the gateway sends is validated against the contract's documents. A shape is compiled at its first use.

/** `format` is documentation: `pattern` decides. A document itself is not a schema, and is not validated as one. */
const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false });
ajv.addSchema({ ...openapi, $id: "openapi" });
ajv.addSchema({ ...openrpc, $id: "openrpc" });

const found = new Map<string, Validate | undefined>();

/** The validator of a schema by its place in a document; undefined where there is none. */
function shapeAt(document: "openapi" | "openrpc", ...path: (string | number)[]): Validate | undefined {
  const parts = path.map((part) => encodeURIComponent(String(part).replaceAll("~", "~0").replaceAll("/", "~1")));
  const place = `${document}#/${parts.join("/")}`;
  if (!found.has(place)) found.set(place, ajv.getSchema(place) as Validate | undefined);
  return found.get(place);
}

/** The body of an operation's answer. */
export function replyShape({ path, method }: Route, status: number, type: string): Validate | undefined {
  const item = openapi.paths[path as keyof typeof openapi.paths] as Record<string, { responses: object }>;
  const responses = item[method.toLowerCase()]?.responses as Record<string, { $ref?: string }> | undefined;
  const response = responses?.[status];
  const place = response?.$ref?.split("/").slice(1) ?? ["paths", path, method.toLowerCase(), "responses", status];
  return response && shapeAt("openapi", ...place, "content", type, "schema");
}

function restShape(name: keyof typeof openapi.components.schemas): Validate {
  return shapeAt("openapi", "components", "schemas", name) as Validate;
}

export function problemShape(): Validate {
  return restShape("Problem");
}
/** One event of a turn's stream. */
export function turnEventShape(): Validate {
  return restShape("TurnEvent");
}
/** A refusal in the format of OpenAI. */
export function openAiErrorShape(): Validate {
  return restShape("OpenAiError");
}
/** One event of a completion's stream. */
export function chunkShape(): Validate {
  return restShape("ChatCompletionChunk");
}

export function resultShape(method: string): Validate | undefined {
  const at = openrpc.methods.findIndex(({ name }) => name === method);
  return shapeAt("openrpc", "methods", at, "result", "schema");
}

const rows = Object.entries(errors).filter(([, { code }]) => code !== null);

/** JSON-RPC's error object, with the codes and names of the table. */
export const rpcErrorShape: Validate = ajv.compile({
  type: "object",
  additionalProperties: false,
  required: ["code", "message"],
  properties: {
    code: { enum: rows.map(([, { code }]) => code) },
    message: { type: "string", minLength: 1 },
    data: {
      type: "object",
      additionalProperties: false,
      required: ["name"],
      properties: {
        name: { enum: rows.map(([name]) => name) },
        detail: { type: "string" },
        requestId: { type: "string" },
        turnId: { type: "string" },
        retryAfterMs: { type: "integer", minimum: 0 },
        budget: { type: "string", minLength: 1 },
        resetsAt: { type: "string", format: "date-time" },
      },
    },
  },
});

let pushes: Map<string, Validate> | undefined;

/** The params of each push, by its name. */
export function pushShapes(): Map<string, Validate> {
  if (pushes !== undefined) return pushes;
  const spec = bundle(openSpecs(`${root}/specs`), "pushes.yaml", "asyncapi");
  const payloads = readPushes(spec).map(({ name, payload }) => [name, payload] as const);
  ajv.addSchema({ $id: "pushes", components: spec.components, payloads: Object.fromEntries(payloads) });
  pushes = new Map(payloads.map(([name]) => [name, ajv.getSchema(`pushes#/payloads/${name}`) as Validate]));
  return pushes;
}
