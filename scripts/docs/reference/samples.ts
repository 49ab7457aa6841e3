import type { Json, JsonObject } from "../../generate/json.ts";
import type { Call, SdkDescription } from "../../generate/sdk/description.ts";
import { argumentsOf } from "../../generate/sdk/python-arguments.ts";
import { snake } from "../../generate/sdk/python-types.ts";
import { pythonCall, typescriptCall } from "./literals.ts";
import { block, paragraphs } from "./words.ts";

export const ADDRESS = "http://127.0.0.1:18789";

/** The values that a caller sends: in the path, the query, and the body or the params of a method. */
export type Sent = { path: Record<string, Json>; query: Record<string, Json>; body: Json | undefined };

type Request = Sent & {
  method: string;
  at: string;
  token: string;
  /** In addition to that of the token. */
  headers?: Record<string, string>;
  /** The answer is a stream of events, which curl shows at once with `-N`. */
  isStream: boolean;
};

const VARIABLES: Record<string, string> = {
  rest: "REST_API_KEY",
  rpc: "RPC_TOKEN",
  webhook: "WEBHOOK_TOKEN",
};

/** A request with curl. `token` is the variable with the token; undefined if none is sent. */
export function curl({ method, at, path, query, body, token, headers = {}, isStream }: Request): string {
  const filled = at.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name] ?? name)));
  const asked = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const address = `${ADDRESS}${filled}${asked === "" ? "" : `?${asked}`}`;
  const implied = body === undefined ? "GET" : "POST";
  const parts = [
    `curl ${isStream ? "-N " : ""}${method === implied ? "" : `-X ${method} `}${address.includes("?") ? `'${address}'` : address}`,
    ...(token === "" ? [] : [`-H "Authorization: Bearer $${token}"`]),
    ...Object.entries(headers).map(([name, value]) => `-H "${name}: ${value}"`),
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`]),
  ];
  return parts.join(" \\\n  ");
}

export function tokenOf({ token }: Pick<Call, "token">): string {
  return VARIABLES[token] ?? "";
}

/** The call of a client that sends a request: with the complete reply, without waiting, or as a stream. */
function callFor(calls: readonly Call[], body: Json | undefined): Call {
  const { stream, wait } = (body ?? {}) as JsonObject;
  const kind = stream === true ? "stream" : wait === false ? "start" : "send";
  return (calls.find((call) => call.kind === kind) ?? calls[0]) as Call;
}

/** The fields that a call of this kind sets automatically. */
const SET_BY_CALL = ["stream", "wait"];

function givenIn({ kind, body: shape }: Call, { body, query }: Sent): Record<string, Json> {
  const given = shape === null ? query : ((body ?? {}) as JsonObject);
  const isSet = shape !== null && kind !== "plain";
  return Object.fromEntries(Object.entries(given).filter(([name]) => !isSet || !SET_BY_CALL.includes(name)));
}

function isThere(given: object): boolean {
  return Object.keys(given).length > 0;
}

function typescript(call: Call, sent: Sent): string {
  const given = call.token === "rpc" && call.http.path === "/rpc" ? (sent.body as JsonObject) : givenIn(call, sent);
  const args: Json[] = call.path.map(({ name }) => sent.path[name] ?? name);
  if (isThere(given) || call.body?.required === true) args.push(given);
  const line = typescriptCall(`gateway.${call.id}`, args);
  if (call.kind === "stream") return `for await (const event of ${line}) console.log(event.event, event.data);`;
  if (call.reply === null) return `await ${line};`;
  const name = call.page?.items ?? "reply";
  if (call.page) return `const { ${name} } = await ${line};`;
  return call.kind === "send" ? `const { reply } = await ${line};` : `const answer = await ${line};`;
}

function python(call: Call, sent: Sent, sdk: SdkDescription): string {
  const isRpc = call.token === "rpc" && call.http.path === "/rpc";
  const given = isRpc ? (sent.body as JsonObject) : givenIn(call, sent);
  const places: Json[] = call.path.map(({ name }) => sent.path[name] ?? name);
  const named: [string, Json][] = [];
  for (const { name, contract, place } of argumentsOf(call, isRpc ? sdk.rpc.shapes : sdk.rest.shapes)) {
    if (place === "body") places.push(given);
    else if (place === "field" && given[contract] !== undefined) named.push([name, given[contract]]);
  }
  const line = pythonCall(`gateway.${call.id.split(".").map(snake).join(".")}`, places, named);
  if (call.kind === "stream") return `for event in ${line}:\n    print(event["event"], event["data"])`;
  if (call.reply === null) return line;
  if (call.page) return `${snake(call.page.items)} = ${line}.items`;
  return call.kind === "send" ? `reply = ${line}["reply"]` : `answer = ${line}`;
}

/** The same request in each language. A call that no client has is shown only with curl. */
export function tabs(calls: readonly Call[], request: Request, sdk: SdkDescription): string {
  const shell = block("sh", curl(request), "curl");
  if (calls.length === 0) return shell;
  const call = callFor(calls, request.body);
  return paragraphs(
    shell,
    block("ts", typescript(call, request), "TypeScript"),
    block("python", python(call, request, sdk), "Python"),
  );
}

/** The names of the supported operations in OpenAI's clients. */
const OF_OPENAI: Record<string, string> = {
  "completions.create": "chat.completions.create",
  "models.list": "models.list",
  "models.get": "models.retrieve",
};

/** The same request with the clients of OpenAI, in each language. */
export function openAiTabs(operation: string, request: Request): string {
  const name = `client.${OF_OPENAI[operation]}`;
  const body = isThere((request.body ?? {}) as JsonObject) ? (request.body as JsonObject) : undefined;
  const places: Json[] = [...Object.values(request.path), ...(body ? [body] : [])];
  const call = typescriptCall(name, places);
  const called = pythonCall(name, Object.values(request.path), Object.entries(body ?? {}));
  const [ts, py] = request.isStream
    ? [
        `for await (const chunk of await ${call})\n  console.log(chunk.choices[0]?.delta.content ?? "");`,
        `for chunk in ${called}:\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "")`,
      ]
    : [`const answer = await ${call};`, `answer = ${called}`];
  return paragraphs(block("sh", curl(request), "curl"), block("ts", ts, "TypeScript"), block("python", py, "Python"));
}

/** The same RPC request in each language. */
export function rpcTabs(call: Call, params: JsonObject, sdk: SdkDescription): string {
  const body = {
    jsonrpc: "2.0",
    id: "1",
    method: call.contract,
    ...(isThere(params) && { params }),
  };
  const shell = curl({ method: "POST", at: "/rpc", path: {}, query: {}, body, token: tokenOf(call), isStream: false });
  const sent = { path: {}, query: {}, body: params };
  return paragraphs(
    block("sh", shell, "curl"),
    block("ts", typescript(call, sent), "TypeScript"),
    block("python", python(call, sent, sdk), "Python"),
  );
}
