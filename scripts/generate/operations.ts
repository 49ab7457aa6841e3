import { type Bundle, resolve as resolveIn } from "./bundle.ts";
import type { ErrorRows } from "./errors.ts";
import { isObject, type Json, type JsonObject, list, object, text, texts } from "./json.ts";
import { type Schema, shapeOf } from "./schema.ts";
import { SpecError } from "./spec-files.ts";

export type Parameter = { in: "path" | "query" | "header"; name: string; required: boolean; schema: JsonObject };
export type Reply = { as: string; status: number; type: string | null };
export type Answer = { status: number; type: string; schema: Schema };

/** One operation of openapi.yaml, in the form that the printers need. `redocly lint` checks its name, surface and scope (redocly.yaml). */
export type Operation = {
  id: string;
  surface: "rest" | "openai" | "hooks" | "public";
  method: string;
  path: string;
  summary: string;
  scope: string | null;
  errors: string[];
  idempotent: boolean;
  bodyLimit: string | null;
  /** The shape of one event, if the operation can answer with a stream of them. */
  stream: string | null;
  parameters: Parameter[];
  body: { type: string; required: boolean; schema: Schema } | null;
  /** The possible successful answers, each under its name. */
  replies: Reply[];
  /** Every body that an answer can have, including problems. */
  answers: Answer[];
};

/** Their errors have the same statuses as on every surface, but the shape that clients of OpenAI read. */
function plainErrors(surface: Operation["surface"], status: number) {
  return surface === "openai" && status >= 400;
}
const bodyLimits = ["restBody", "webhookBody"];
const eventStream = "text/event-stream";
/** The name of a reply by its type, if one status has several. */
const nameOfType: Record<string, string> = { [eventStream]: "events", "text/html": "page" };

export function readOperations({ document, components }: Bundle, errors: ErrorRows): Operation[] {
  const resolve = (node: Json | undefined) => resolveIn(node, components);
  const shapes = components.schemas ?? {};
  const operations: Operation[] = [];
  for (const [path, item] of Object.entries(object(document.paths))) {
    for (const [method, node] of Object.entries(object(item))) {
      if (!isObject(node) || !isObject(node.responses)) continue;
      const shared = list(object(item).parameters);
      operations.push(readOperation(path, method, { ...node, parameters: [...shared, ...list(node.parameters)] }));
    }
  }
  const twice = operations.find(({ id }, index) => operations.findIndex((other) => other.id === id) !== index);
  if (twice !== undefined) throw new SpecError("specs/openapi.yaml", `two operations are called ${twice.id}`);
  return operations;

  function readOperation(path: string, method: string, node: JsonObject): Operation {
    const where = `specs/openapi.yaml, ${method.toUpperCase()} ${path}`;
    const refuse = (message: string): never => {
      throw new SpecError(where, message);
    };
    const one = (value: Json | undefined, among: string[], name: string): string =>
      among.includes(text(value)) ? text(value) : refuse(`${name} must be one of ${among.join(", ")}`);
    const id = text(node.operationId);
    const surface = text(node["x-surface"]) as Operation["surface"];
    const stream = node["x-stream"] === undefined ? null : text(node["x-stream"]);
    if (stream !== null && shapes[stream] === undefined) refuse(`no shape is called ${stream}, which x-stream names`);

    const replies: Reply[] = [];
    const answers: Answer[] = [];
    const problems = new Set<number>();
    for (const [code, response] of Object.entries(object(node.responses))) {
      const status = Number(code);
      if (!Number.isInteger(status)) refuse(`"${code}" is no status`);
      const { content, "x-reply": name } = resolve(response);
      const types = Object.entries(object(content));
      for (const [type, media] of types) {
        answers.push({ status, type, schema: (object(media).schema as Schema | undefined) ?? true });
        if (type === "application/problem+json" || plainErrors(surface, status)) problems.add(status);
        // The door writes the reply of a handler as XML.
        if (status < 300 && type !== "text/xml")
          replies.push({
            as: (types.length > 1 || type === eventStream ? nameOfType[type] : undefined) ?? (text(name) || "ok"),
            status,
            type,
          });
      }
      if (types.length === 0 && status < 300) replies.push({ as: text(name) || "ok", status, type: null });
    }
    if (replies.length === 0) refuse("it has no reply for success");
    for (const reply of replies) {
      if (replies.filter(({ as }) => as === reply.as).length > 1)
        refuse(`two replies are called ${reply.as}: set x-reply`);
    }
    if (replies.some(({ type }) => type === eventStream) !== (stream !== null)) {
      refuse(`a reply of ${eventStream} and x-stream belong together`);
    }

    const names = texts(node["x-errors"]);
    for (const name of names) {
      const row = errors[name] ?? refuse(`specs/errors.yaml has no row ${name}`);
      if (!problems.has(row.status)) refuse(`it names ${name}, but has no problem with status ${row.status}`);
    }
    for (const status of problems) {
      if (!names.some((name) => errors[name]?.status === status))
        refuse(`no error of x-errors has its status ${status}`);
    }

    const parameters = list(node.parameters).map((parameter): Parameter => {
      const { in: place, name, required, schema } = resolve(parameter);
      return {
        in: one(place, ["path", "query", "header"], "in") as Parameter["in"],
        name: text(name),
        required: required === true,
        schema: object(schema),
      };
    });
    const idempotent = node["x-idempotent"] === true;
    if (idempotent && !parameters.some(({ name }) => name === "Idempotency-Key")) {
      refuse("x-idempotent needs the header parameter Idempotency-Key");
    }

    return {
      id,
      surface,
      method,
      path,
      summary: text(node.summary),
      scope: text(node["x-scope"]) || null,
      errors: names,
      idempotent,
      bodyLimit: node["x-body-limit"] === undefined ? null : one(node["x-body-limit"], bodyLimits, "x-body-limit"),
      stream,
      parameters,
      body: readBody(resolve(node.requestBody), refuse),
      replies,
      answers,
    };
  }
}

function readBody({ required, content }: JsonObject, refuse: (message: string) => never): Operation["body"] {
  // A body in another media type is read as the same value.
  const [first] = Object.entries(object(content));
  if (first === undefined) return null;
  const [type, media] = first;
  const schema = object(object(media).schema);
  // A field with a default is always present only in the types of shapes.
  if (shapeOf(schema) === undefined) refuse("a request body refers to a shape");
  return { type, required: required === true, schema };
}
