import type { Bundle } from "../bundle.ts";
import type { ErrorRows } from "../errors.ts";
import { type Json, type JsonObject, list, object, text } from "../json.ts";
import type { Answer, Operation } from "../operations.ts";
import type { Push } from "../push-types.ts";
import type { Method } from "../rpc-types.ts";
import { shapeOf } from "../schema.ts";
import { SpecError } from "../spec-files.ts";
import { type Field, namesIn, type Shape, shapesFrom, type Type, typeOfSchema } from "./shapes.ts";

/** The token that a call sends. */
export type Token = "rest" | "rpc" | "webhook" | "none";

/**
 * The form of the reply: complete; a page at a time; complete at the turn's end (`send`); at once, while the turn continues (`start`); or as events
 * (`stream`).
 */
export type CallKind = "plain" | "page" | "send" | "start" | "stream";

/** One call that a client offers. */
export type Call = {
  /** `chat.send` or `rpc.agent.list`: the name after `gateway.`. */
  id: string;
  /** The noun and the verb, without `rpc`. */
  noun: string;
  verb: string;
  kind: CallKind;
  /** The operation or the method in the contract. */
  contract: string;
  summary: string;
  doc: string;
  token: Token;
  http: { method: string; path: string };
  /** The parameters of the path, in their order. */
  path: Field[];
  /** The query of a REST call, or the params of an RPC method. */
  params: Field[];
  /** The shape of the body, in the form that a caller writes. */
  body: { shape: string; required: boolean } | null;
  reply: Type | null;
  /** Whether the reply is text, not JSON. */
  text: boolean;
  /** The statuses of failures that have the same body as a success. */
  replyStatuses: number[];
  /** The field with the items of a page, and the field with the next page's cursor. */
  page: { items: string; item: Type; next: string } | null;
  /** Sent with an idempotency key. */
  idempotent: boolean;
  /** A second call has no further effect. */
  repeatable: boolean;
  errors: string[];
};

export type SdkDescription = {
  rest: { calls: Call[]; shapes: Shape[] };
  rpc: { calls: Call[]; shapes: Shape[] };
  pushes: { names: { name: string; doc: string; type: Type }[]; shapes: Shape[] };
  errors: { name: string; status: number; title: string; meaning: string; retry: boolean }[];
};

type Contract = {
  openapi: Bundle;
  openrpc: Bundle;
  asyncapi: Bundle;
  errors: ErrorRows;
  operations: Operation[];
  methods: Method[];
  pushes: Push[];
};

/** The part of the contract that the printers of the SDKs need. */
export function describeSdk({
  openapi: { document, components },
  openrpc,
  asyncapi,
  errors,
  operations,
  methods,
  pushes,
}: Contract): SdkDescription {
  // The added shape exists only in the clients, not in the contract.
  const openapi: Bundle = { document, components: { ...components, schemas: { ...components.schemas } } };
  // OpenAI's own clients call the others.
  const rest = operations.filter(({ surface }) => surface !== "openai").flatMap((one) => restCalls(one, openapi));
  const rpc = methods.map((method) => rpcCall(method, openrpc));
  const names = pushes.map(({ name, summary, payload }) => ({ name, doc: summary, type: typeOfSchema(payload) }));
  return {
    rest: {
      calls: rest,
      shapes: shapesFrom(openapi, [...namesOf(rest), ...thereIn(openapi, [...RECEIVED, "Problem"])]),
    },
    rpc: { calls: rpc, shapes: shapesFrom(openrpc, namesOf(rpc)) },
    pushes: {
      names,
      shapes: shapesFrom(asyncapi, [
        ...names.flatMap(({ type }) => namesIn(type)),
        ...thereIn(asyncapi, SOCKET_SHAPES),
      ]),
    },
    errors: Object.entries(errors).map(([name, { status, title, meaning, retry }]) => ({
      name,
      status,
      title,
      meaning,
      retry,
    })),
  };
}

/** The params and the result of the two calls that only a WebSocket takes. */
const SOCKET_SHAPES = ["Subscribe", "Subscribed", "Unsubscribe"];

/** The bodies that the gateway sends to receivers. */
const RECEIVED = [
  "Announcement",
  "CompletedTurnNotification",
  "TurnNotification",
  "DeadEventNotification",
  "DeadAnnouncementNotification",
  "AgentNotification",
  "KeyNotification",
  "BudgetNotification",
  "HealthNotification",
  "TestNotification",
];

/** A contract need not have webhooks or a WebSocket. */
function thereIn({ components }: Bundle, names: string[]): string[] {
  return names.filter((name) => components.schemas?.[name] !== undefined);
}

function namesOf(calls: Call[]): string[] {
  return calls.flatMap(({ path, params, body, reply }) => [
    ...[...path, ...params].flatMap((field) => namesIn(field.type)),
    ...(body ? [body.shape] : []),
    ...(reply ? namesIn(reply) : []),
  ]);
}

/** POSTs without a change, or with the same change each time. */
const REPEATABLE = ["turns.cancel", "agents.pause", "agents.resume", "mappings.dryRun", "mappings.backtest"];
/** The operations that answer at the end of their turn, each with the name of the call that does not wait. */
const WAITING: Record<string, string> = { "chat.send": "start", "skills.trigger": "start" };

function restCalls(operation: Operation, openapi: Bundle): Call[] {
  const { id, method, path, parameters, body, idempotent, answers, replies } = operation;
  const described = object(object(object(openapi.document.paths)[path])[method]);
  const fields = (place: "path" | "query"): Field[] =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, schema }) => ({
        name,
        required,
        type: typeOfSchema(schema),
        doc: docOf(schema, openapi),
      }));
  const [noun = "", verb = ""] = id.split(".");
  const json = answers.find(({ status, type }) => status < 300 && type.endsWith("json"));
  const isText =
    json === undefined && replies.some(({ type }) => type?.startsWith("text/plain") || type === "text/html");
  const call: Call = {
    id,
    noun,
    verb,
    kind: "plain",
    contract: id,
    summary: operation.summary,
    doc: text(described.description),
    token: tokenOf(operation),
    http: { method: method.toUpperCase(), path },
    path: fields("path"),
    params: fields("query"),
    body: body && { shape: shapeOf(body.schema) as string, required: body.required },
    reply: json ? typeOfSchema(json.schema as Json) : isText ? { kind: "string" } : null,
    text: isText,
    replyStatuses: answers
      .filter(({ status, type }) => status >= 400 && type === "application/json")
      .map(({ status }) => status),
    page: null,
    idempotent,
    repeatable: idempotent || method === "get" || method === "delete" || REPEATABLE.includes(id),
    errors: operation.errors,
  };
  if (replies.every(({ type }) => type === EVENTS)) return [{ ...call, kind: "stream", reply: eventOf(operation) }];
  const start = WAITING[id];
  if (start === undefined) return [withPage(call, openapi, "next_cursor")];
  const accepted = typeOfSchema((answers.find(({ status }) => status === 202) as Answer).schema as Json);
  return [
    { ...call, kind: "send" },
    {
      ...call,
      id: `${noun}.${start}`,
      verb: start,
      kind: "start",
      // A repeated call gets the reply if the turn has ended meanwhile.
      reply: { kind: "named", name: nameOfStarted([accepted, call.reply as Type], openapi) },
    },
    { ...call, id: `${noun}.stream`, verb: "stream", kind: "stream", reply: eventOf(operation) },
  ];
}

const STARTED = "TurnStarted";

/** One shape for a started turn, with the fields of all its answers. It is added to the contract's shapes. */
function nameOfStarted(answers: Type[], { components }: Bundle): string {
  const schemas = answers.map((type) => object(components.schemas?.[type.kind === "named" ? type.name : ""]));
  const names = [...new Set(schemas.flatMap(({ properties }) => Object.keys(object(properties))))];
  const found = (name: string) =>
    schemas.map(({ properties }) => object(properties)[name]).filter((one) => one !== undefined);
  const properties = Object.fromEntries(
    names.map((name) => {
      const [first, ...others] = found(name);
      const isOne = others.every((other) => JSON.stringify(other) === JSON.stringify(first));
      return [name, isOne ? (first as Json) : { oneOf: found(name) as Json[] }];
    }),
  );
  const required = names.filter((name) => schemas.every((schema) => list(schema.required).includes(name)));
  const description =
    "A turn was started. `reply` is set if the turn has already ended, which happens only for repeated calls.";
  Object.assign(components.schemas ?? {}, {
    [STARTED]: { type: "object", description, properties, required, additionalProperties: false },
  });
  return STARTED;
}

const EVENTS = "text/event-stream";
function eventOf({ stream }: Operation): Type {
  return { kind: "named", name: stream as string };
}

function tokenOf({ surface, id }: Operation): Token {
  return surface === "hooks" ? "webhook" : surface === "rest" ? "rest" : id === "ops.metrics" ? "rpc" : "none";
}

function docOf(schema: JsonObject, { components }: Bundle): string {
  return text(schema.description) || text(object(components.schemas?.[shapeOf(schema) ?? ""]).description);
}

function rpcCall({ name, params, result }: Method, openrpc: Bundle): Call {
  const described = object(list(openrpc.document.methods).find((method) => object(method).name === name));
  const type = typeOfSchema(params);
  const [noun = "", verb = ""] = name.split(".");
  const fields = type.kind === "record" ? type.fields : [];
  const call: Call = {
    id: `rpc.${name}`,
    noun,
    verb,
    kind: "plain",
    contract: name,
    summary: text(described.summary),
    doc: text(described.description),
    token: "rpc",
    http: { method: "POST", path: "/rpc" },
    path: [],
    params: fields,
    body: null,
    reply: typeOfSchema(result as Json),
    text: false,
    replyStatuses: [],
    page: null,
    idempotent: described["x-idempotent"] === true,
    // A message requires its idempotency key for this; compaction and deletion give a repeat the first answer.
    repeatable: true,
    errors: list(described["x-errors"]).map(text),
  };
  return withPage(call, openrpc, "nextCursor");
}

/** A call that accepts a cursor and returns the next one lists pages. A page has only one list next to the cursor. */
function withPage(call: Call, { components }: Bundle, next: string): Call {
  if (call.reply?.kind !== "named" || !call.params.some(({ name }) => name === "cursor")) return call;
  const reply = typeOfSchema(components.schemas?.[call.reply.name]);
  if (reply.kind !== "record" || !reply.fields.some(({ name }) => name === next)) return call;
  const lists = reply.fields.flatMap(({ name, type }) =>
    type.kind === "list" ? [{ items: name, item: type.of }] : [],
  );
  const [only, ...others] = lists;
  if (only === undefined || others.length > 0)
    throw new SpecError(`the reply of ${call.contract}`, `beside ${next} it must have one list`);
  return { ...call, kind: "page", page: { ...only, next } };
}
