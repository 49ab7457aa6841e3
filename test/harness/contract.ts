import { type ErrorName, errors } from "#generated/errors.ts";
import openapi from "#generated/openapi.json" with { type: "json" };
import type { OpenAiError } from "#generated/rest-types.ts";
import { type Route, routes } from "#generated/routes.ts";
import type { Validate } from "#generated/validators/validate.ts";
import { isOpenAiPath, openAiErrorFaults } from "./openai-contract.ts";
import { openAiErrorShape, problemShape, replyShape, turnEventShape } from "./shapes.ts";

/** The place of a request, which determines the contract of its reply. */
export type Place = { method: string; path: string };

/** A received reply. The body of a stream is checked event by event, and is undefined here. */
type Received = { status: number; headers: Headers; body: string | undefined };

export type Problem = {
  type: string;
  title: string;
  status: number;
  detail?: string;
  errors?: { pointer: string; message: string }[];
  request_id: string;
  turn_id?: string;
  retry_after_ms?: number;
};

type Shape = { type?: string; const?: unknown; minimum?: number };
type Response = {
  headers?: Record<string, { required?: boolean; schema: Shape }>;
  content?: Record<string, unknown>;
  "x-may-be-empty"?: boolean;
};

/** The headers that any reply may carry. */
const COMMON = new Set([
  "cache-control",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "keep-alive",
  "strict-transport-security",
  "transfer-encoding",
  "vary",
  "x-accel-buffering",
  "x-content-type-options",
  "x-request-id",
]);

/** The headers that allow a page of another origin to read a reply: all of them, or none. */
const TO_PAGES = ["access-control-allow-origin", "access-control-expose-headers"];

/** The errors that occur before an operation is found. */
const BEFORE_ANY: readonly ErrorName[] = [
  "not-found",
  "unauthenticated",
  "tls-required",
  "origin-not-allowed",
  "uri-too-long",
  "headers-too-large",
  "invalid-request",
  "request-timeout",
];

/** The operation of a place. A path with other methods but not this one is validated against the first of them. */
export function routeAt({ method, path }: Place): Route | undefined {
  const here = routesAt(path);
  return here.find((route) => route.method === method) ?? here[0];
}

/** The operations of a path, with any method. */
export function routesAt(path: string): Route[] {
  const target = path.split("?")[0] as string;
  return (routes as readonly Route[]).filter(({ path: template }) => fits(template, target));
}

function fits(template: string, target: string): boolean {
  const [parts, given] = [template.split("/"), target.split("/")];
  return parts.length === given.length && parts.every((part, n) => part === given[n] || (part[0] === "{" && given[n]));
}

/** All parts of a reply that do not match the contract; empty if it is valid. */
export function faultsOf(place: Place, reply: Received): string[] {
  const route = routeAt(place);
  const { status, headers, body } = reply;
  const found = [...headFaults(route, reply), ...leaks(body ?? "")];
  if (!/^req_[0-9A-HJKMNP-TV-Z]{26}$/.test(headers.get("x-request-id") ?? "")) found.push("x-request-id is missing");
  if (route && route.surface !== "public") found.push(...privacyFaults(headers));
  // A compressed body was decompressed before.
  const length = headers.has("content-encoding") ? null : headers.get("content-length");
  const isHead = place.method === "HEAD";
  if (body !== undefined && length !== null && !isHead && Number(length) !== Buffer.byteLength(body))
    found.push(`content-length is ${length}, the body has ${Buffer.byteLength(body)} bytes`);
  if (isHead && body !== "") found.push("HEAD was answered with a body");
  if (!isHead && body !== undefined) found.push(...bodyFaults(place, route, reply, body));
  return found.map((fault) => `${place.method} ${place.path.slice(0, 80)} → ${status}: ${fault}`);
}

/** An answer of an API is in no cache, and has the type of its header. */
export function privacyFaults(headers: Headers): string[] {
  const found: string[] = [];
  if (!headers.get("cache-control")?.includes("no-store")) found.push("cache-control lacks no-store");
  if (headers.get("x-content-type-options") !== "nosniff") found.push("x-content-type-options is not nosniff");
  return found;
}

function responseOf({ method, path }: Route, status: number): Response | undefined {
  const item = openapi.paths[path as keyof typeof openapi.paths] as Record<string, { responses: object }>;
  const responses = item[method.toLowerCase()]?.responses as Record<string, Response> | undefined;
  return responses?.[status] && resolve(responses[status]);
}

function resolve<T>(value: T): T {
  const { $ref } = value as { $ref?: string };
  if ($ref === undefined) return value;
  const target = $ref
    .split("/")
    .slice(1)
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key.replaceAll("~1", "/")], openapi);
  return resolve(target as T);
}

function headFaults(route: Route | undefined, { status, headers }: Received): string[] {
  const response = route && responseOf(route, status);
  if (route && !response) return [`${route.operation} has no such status`];
  const found: string[] = [];
  const declared = new Map(
    Object.entries(response?.headers ?? {}).map(([name, header]) => [name.toLowerCase(), resolve(header)]),
  );
  for (const [name, { required, schema }] of declared) {
    const value = headers.get(name);
    if (value === null && required) found.push(`${name} is missing`);
    if (value !== null) found.push(...headerFaults(name, value, resolve(schema)));
  }
  for (const [name] of headers)
    if (!COMMON.has(name) && !declared.has(name) && !TO_PAGES.includes(name) && route)
      found.push(`${name} is not in the contract`);
  const toPages = TO_PAGES.filter((name) => headers.has(name));
  if (headers.get("vary")?.includes("Origin")) toPages.push("vary");
  const isUndeclared = !toPages.every((name) => declared.has(name));
  if (isUndeclared && toPages.length <= TO_PAGES.length && toPages.length > 0)
    found.push(`of a page's headers only ${toPages}`);
  const types = Object.keys(response?.content ?? {});
  const type = mediaOf(headers);
  const isEmpty = type === undefined && response?.["x-may-be-empty"] === true;
  if (route && !isEmpty && (types.length === 0 ? type !== undefined : !types.includes(type ?? "")))
    found.push(`the content-type is ${type}, not ${types.join(" or ") || "none"}`);
  return found;
}

function headerFaults(name: string, value: string, { type, const: only, minimum }: Shape): string[] {
  if (only !== undefined && value !== only) return [`${name} is ${value}, not ${only}`];
  if (type !== "integer") return [];
  return /^\d+$/.test(value) && Number(value) >= (minimum ?? 0) ? [] : [`${name} is ${value}, no whole number`];
}

export function mediaOf(headers: Headers): string | undefined {
  return headers.get("content-type")?.split(";")[0]?.trim() || undefined;
}

function bodyFaults({ path }: Place, route: Route | undefined, { status, headers }: Received, body: string): string[] {
  const type = mediaOf(headers);
  if (type === undefined) return body === "" ? [] : ["there is a body without a content-type"];
  let value: unknown = body;
  if (type.endsWith("json")) {
    try {
      value = JSON.parse(body);
    } catch {
      return ["the body is not JSON"];
    }
  }
  const isOpenAi = isOpenAiPath(path) && type === "application/json";
  const validate = route ? replyShape(route, status, type) : isOpenAi ? openAiErrorShape() : problemShape();
  if (!validate) return [`there is no validator for ${route?.operation} ${status} ${type}`];
  const found = validate(value) ? [] : wordsOf(validate);
  if (status >= 400 && isOpenAi && found.length === 0)
    return openAiErrorFaults(route ? route.errors : BEFORE_ANY, value as OpenAiError, status, headers);
  return status >= 400 && type === "application/problem+json"
    ? [...found, ...problemFaults(route, value as Problem, status, headers)]
    : found;
}

export function wordsOf({ errors: faults }: Validate): string[] {
  return (faults ?? []).map(({ instancePath, message }) => `${instancePath || "the body"} ${message}`);
}

/** The error of a problem in the error table. */
export function errorNameOf({ type }: Problem): ErrorName {
  return type.replace("/docs/errors.html#", "") as ErrorName;
}

function problemFaults(route: Route | undefined, problem: Problem, status: number, headers: Headers): string[] {
  const name = errorNameOf(problem);
  const row = errors[name];
  if (!row) return [`${name} is no row of the error table`];
  const found: string[] = [];
  if (!(route ? route.errors : BEFORE_ANY).includes(name)) found.push(`${name} is not among its x-errors`);
  if (row.status !== status || problem.status !== status) found.push(`${name} has the status ${row.status}`);
  if (row.title !== problem.title) found.push(`${name} has the title ${row.title}`);
  if (problem.request_id !== headers.get("x-request-id")) found.push("request_id is not x-request-id");
  if (name === "internal" && problem.detail !== undefined) found.push("internal reveals its cause");
  const { retry_after_ms: ms } = problem;
  const wait = headers.get("retry-after");
  if ((ms === undefined) !== (wait === null)) found.push("Retry-After and retry_after_ms go together");
  if (ms !== undefined && Number(wait) !== Math.max(1, Math.ceil(ms / 1000)))
    found.push(`Retry-After is ${wait}, retry_after_ms ${ms}`);
  // The failure of a turn for a budget is final for its idempotency key.
  const isFinal = name === "budget-exceeded" && headers.get("idempotent-replayed") === "true";
  if (isFinal && wait !== null) found.push("a replayed failure comes with Retry-After");
  if (row.retry && wait === null && !isFinal) found.push(`${name} comes without Retry-After`);
  if (!row.retry && wait !== null && name !== "unauthenticated") found.push(`${name} comes with Retry-After`);
  if (
    (name === "rate-limited") !== headers.has("ratelimit-policy") ||
    headers.has("ratelimit") !== (name === "rate-limited")
  )
    found.push("the RateLimit headers go with rate-limited, and with nothing else");
  return found;
}

/** Stacks, paths of the machine and classes of libraries must not leave the process. */
function leaks(body: string): string[] {
  const signs = [process.cwd(), "node_modules", "node:internal", ".ts:", ".js:"];
  return [
    ...signs.filter((sign) => body.includes(sign)).map((sign) => `the body tells of ${sign}`),
    ...(/\n\s+at /.test(body) ? ["the body holds a stack"] : []),
  ];
}

export type StreamEvent = { event: string; id: string; data: Record<string, unknown> };

export function eventFaults(event: unknown): string[] {
  const shape = turnEventShape();
  if (shape(event)) return [];
  return wordsOf(shape).map((fault) => `the event ${JSON.stringify(event).slice(0, 200)}: ${fault}`);
}

export const LAST_EVENTS = ["turn.completed", "turn.failed", "turn.cancelled"];

/** The REST operations of the contract. */
export const restRoutes = (routes as readonly Route[]).filter(({ surface }) => surface === "rest");
export type { Route };
