import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { missingPackages } from "#gateway/packages.ts";
import { documents } from "./documents.ts";
import { CliError } from "./failures.ts";

type Json = Record<string, unknown>;
type RouterError = { code: number; message: string; data?: unknown };
type Router = {
  call(method: string, params: unknown): Promise<{ result?: unknown; error?: RouterError }>;
  isMethodImplemented(method: string): boolean;
};

/** Serves the contract with its own examples, and gives its address. */
export async function startMock(host: string, port: number): Promise<string> {
  const router = await createRouter();
  const operations = operationsOf(documents.openapi as Json);
  const server = createServer((req, res) => {
    answer(req, res).catch((error: Error) => problem(res, 500, "internal", error.message));
  });
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<unknown> => {
    const body = await text(req);
    const [path = "/"] = (req.url ?? "/").split("?");
    return path === "/rpc" ? await answerRpc(router, req, body, res) : answerHttp(operations, req, path, body, res);
  };
  server.listen(port, host);
  await Promise.race([
    once(server, "listening"),
    once(server, "error").then(([error]) => {
      throw new CliError(
        `It cannot listen on ${host}:${port}: ${(error as NodeJS.ErrnoException).code}.`,
        1,
        "choose another port: --port PORT",
      );
    }),
  ]);
  return `http://${host.includes(":") ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

function send(res: ServerResponse, status: number, type: string, body: string): void {
  res.writeHead(status, { "content-type": type, "x-mock": "true" }).end(body);
}
function sendJson(res: ServerResponse, status: number, body: unknown, type = "application/json"): void {
  send(res, status, type, JSON.stringify(body));
}
function problem(res: ServerResponse, status: number, name: string, detail: string): void {
  sendJson(
    res,
    status,
    { type: `/docs/errors.html#${name}`, title: name, status, detail, request_id: "req_mock" },
    "application/problem+json",
  );
}

/** What a reference leads to, with all references inside it followed. The contract has no shape that holds itself. */
function resolve(node: unknown, document: Json): unknown {
  if (Array.isArray(node)) return node.map((item) => resolve(item, document));
  if (typeof node !== "object" || node === null) return node;
  const { $ref, ...rest } = node as Json;
  const here = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, resolve(value, document)]));
  if (typeof $ref !== "string") return here;
  const target = $ref
    .slice(2)
    .split("/")
    .reduce<unknown>((at, name) => (at as Json)[name], document);
  return { ...(resolve(target, document) as Json), ...here };
}

type Example = { value: unknown };
type Media = Record<string, { examples?: Record<string, Example> }>;
type Operation = { method: string; path: string; pattern: RegExp; responses: Record<string, { content?: Media }> };

function operationsOf(document: Json): Operation[] {
  return (
    Object.entries(document.paths as Record<string, Json>)
      .flatMap(([path, item]) =>
        Object.entries(item).flatMap(([method, operation]) => {
          const { responses } = operation as { responses?: Json };
          if (responses === undefined) return [];
          const pattern = new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "[^/]+")}$`);
          return [{ method: method.toUpperCase(), path, pattern, responses: withoutSchemas(responses, document) }];
        }),
      )
      // A path without a place to fill in is meant before one that has it.
      .sort((one, other) => one.path.split("{").length - other.path.split("{").length)
  );
}

/** The responses with their examples; shapes may be large, and are of no use here. */
function withoutSchemas(responses: Json, document: Json): Operation["responses"] {
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const followed = (
        typeof (response as Json).$ref === "string" ? followOnce(response as Json, document) : response
      ) as Json;
      const content = Object.entries((followed.content ?? {}) as Record<string, Json>).map(([type, { examples }]) => [
        type,
        { examples: resolve(examples, document) },
      ]);
      return [status, { content: Object.fromEntries(content) as Media }];
    }),
  );
}
function followOnce({ $ref }: Json, document: Json): unknown {
  return String($ref)
    .slice(2)
    .split("/")
    .reduce<unknown>((at, name) => (at as Json)[name], document);
}

function answerHttp(
  operations: readonly Operation[],
  req: IncomingMessage,
  path: string,
  body: string,
  res: ServerResponse,
): unknown {
  const there = operations.filter(({ pattern }) => pattern.test(path));
  if (there.length === 0) return problem(res, 404, "not-found", `There is nothing at ${path}.`);
  const operation = there.find(({ method }) => method === req.method);
  if (operation === undefined)
    return problem(res, 405, "method-not-allowed", `${path} takes ${there.map(({ method }) => method).join(", ")}.`);
  const given = jsonIn(body);
  if (body !== "" && given === undefined) return problem(res, 400, "parse-error", "The body is not JSON.");
  const wanted = /code=(\d{3})/.exec(String(req.headers.prefer ?? ""))?.[1];
  const status = wanted ?? Object.keys(operation.responses).find((code) => code.startsWith("2")) ?? "200";
  const response = operation.responses[status];
  if (response === undefined)
    return problem(
      res,
      400,
      "invalid-request",
      `The contract has no ${status} here. It has ${Object.keys(operation.responses).join(", ")}.`,
    );
  const types = Object.entries(response.content ?? {});
  const isStream = (given as Json | undefined)?.stream === true || path.endsWith("/events");
  const [type, media] = types.find(([name]) => (name === "text/event-stream") === isStream) ?? types[0] ?? [];
  if (type === undefined) return res.writeHead(Number(status), { "x-mock": "true" }).end();
  const value = Object.values(media?.examples ?? {})[0]?.value ?? "";
  send(res, Number(status), type, typeof value === "string" && !type.endsWith("json") ? value : JSON.stringify(value));
}

function jsonIn(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

type Method = {
  name: string;
  params: { name: string }[];
  examples?: { params: { name: string; value: unknown }[]; result: { value: unknown } }[];
};

/** Checks calls against the contract, and answers with the example whose params are those of the call, else with the first. */
async function createRouter(): Promise<Router> {
  const { Router } = await import("@open-rpc/server-js/build/router.js").catch(() => {
    throw new CliError("The mock needs the package @open-rpc/server-js.", 1, missingPackages(["mock"]));
  });
  const document = resolve(documents.openrpc, documents.openrpc as Json) as { methods: Method[] };
  const bodies = document.methods.map(({ name, params, examples = [] }) => [
    name,
    async (...args: unknown[]) => {
      const given = Object.fromEntries(
        params.flatMap((param, n) => (args[n] === undefined ? [] : [[param.name, args[n]]])),
      );
      const same = examples.find((example) => JSON.stringify(byName(example.params)) === JSON.stringify(given));
      return (same ?? examples[0])?.result.value ?? {};
    },
  ]);
  return new Router(document as never, Object.fromEntries(bodies) as never) as Router;
}
function byName(params: readonly { name: string; value: unknown }[]): Json {
  return Object.fromEntries(params.map(({ name, value }) => [name, value]));
}

type Call = { jsonrpc?: unknown; method?: unknown; params?: unknown; id?: string | number | null };

/** JSON-RPC over HTTP, in front of the router: it knows neither batches nor notifications. */
async function answerRpc(router: Router, req: IncomingMessage, body: string, res: ServerResponse): Promise<unknown> {
  if (req.method !== "POST") return sendJson(res, 405, refusal(null, -32600, "Invalid Request"));
  const message = jsonIn(body);
  if (message === undefined) return sendJson(res, 400, refusal(null, -32700, "Parse error"));
  const calls = (Array.isArray(message) ? message : [message]) as Call[];
  const answers = (await Promise.all(calls.map((call) => answerCall(router, call)))).filter(
    (answer) => answer !== undefined,
  );
  if (answers.length === 0) return res.writeHead(204, { "x-mock": "true" }).end();
  sendJson(res, 200, Array.isArray(message) ? answers : answers[0]);
}

async function answerCall(router: Router, call: Call): Promise<object | undefined> {
  const { jsonrpc, method, params = {}, id } = call ?? {};
  if (jsonrpc !== "2.0" || typeof method !== "string") return refusal(id ?? null, -32600, "Invalid Request");
  const { result, error } = await router.call(method, params);
  if (id === undefined) return undefined;
  return error === undefined ? { jsonrpc, id, result } : { jsonrpc, id, error: inOurForm(error) };
}

/** The router's errors in the form of the contract. */
function inOurForm({ code, message, data }: RouterError): object {
  const [fault] = Array.isArray(data) ? (data as { message?: string }[]) : [];
  const detail = fault?.message ?? (typeof data === "string" ? data : message);
  return {
    code,
    message,
    data: { name: code === -32601 ? "method-not-found" : "invalid-params", detail, requestId: "req_mock" },
  };
}

function refusal(id: unknown, code: number, message: string): object {
  return {
    jsonrpc: "2.0",
    id,
    error: { code, message },
  };
}
