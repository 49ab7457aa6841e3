import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { literal } from "../json.ts";
import { comment, header, type Output } from "../output.ts";
import { printApiPage } from "./api-page.ts";
import type { Call, SdkDescription } from "./description.ts";
import { namesIn, type Shape } from "./shapes.ts";
import { printShape, printType } from "./typescript-types.ts";

const FOLDER = "clients/typescript";

/** The package of the TypeScript client. */
export function typescriptSdk(sdk: SdkDescription, version: string): Output {
  const output: Output = {
    "src/error-names.ts": printErrorNames(sdk),
    "src/rest-types.ts": `${header("openapi.yaml")}\n${sdk.rest.shapes.map(printShape).join("\n")}`,
    "src/rpc-types.ts": printRpcTypes(sdk),
    "src/push-types.ts": printPushTypes(sdk),
    "src/rest.ts": printRest(sdk.rest.calls),
    "src/rpc.ts": printRpc(sdk.rpc.calls),
    "api.md": printApiPage(sdk, {
      language: "ts",
      intro: INTRO,
      socket: SOCKET,
      failures: FAILURES,
      printType,
      callOf: ({ noun, verb }) => `${noun}.${verb}`,
      fieldOf: (_, name) => name,
      signatureOf: anySignature,
      docOf,
    }),
    "package.json": printPackage(version),
    "jsr.json": printJsr(version),
    ...copiedRuntime(),
  };
  return Object.fromEntries(Object.entries(output).map(([path, content]) => [`${FOLDER}/${path}`, content]));
}

/** Code that does not depend on the contract. Its imports of generated files point to files next to it. */
function copiedRuntime(): Output {
  const folder = fileURLToPath(new URL("../runtime/typescript/", import.meta.url));
  const output: Output = {};
  for (const name of readdirSync(folder).sort()) {
    const source = readFileSync(folder + name, "utf8");
    if (!name.endsWith(".ts")) {
      output[name] = source;
      continue;
    }
    const line = `// Copied by "npm run generate" from scripts/generate/runtime/typescript/${name}; do not edit.\n`;
    output[`src/${name}`] = line + source.replaceAll(`"#generated/${FOLDER}/src/`, `"./`);
  }
  return output;
}

function printErrorNames({ errors }: SdkDescription): string {
  return `${header("errors.yaml")}
/** The names of the gateway's errors. */
export type ErrorName =
${errors.map(({ name, meaning }) => `${comment(meaning, "  ")}  | ${literal(name)}`).join("\n")};

/** The errors after which the same call may succeed. */
export const retriedNames = [${errors
    .filter(({ retry }) => retry)
    .map(({ name }) => literal(name))
    .join(", ")}] as const;
`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
function paramsName({ noun, verb }: Call): string {
  return `${capital(noun)}${capital(verb)}Params`;
}

function printRpcTypes({ rpc: { calls, shapes } }: SdkDescription): string {
  const params: Shape[] = calls.map((call) => ({
    name: paramsName(call),
    doc: `The params of \`${call.contract}\`.`,
    type: { kind: "record", fields: call.params, open: false },
  }));
  const rows = calls.map(
    (call) =>
      `  ${literal(call.contract)}: { params: ${paramsName(call)}; result: ${call.reply ? printType(call.reply) : "void"} };`,
  );
  return `${header("openrpc.json")}
${[...shapes, ...params].map(printShape).join("\n")}
/** Each method with its params and its result. */
export interface RpcMethods {
${rows.join("\n")}
}

export type RpcMethod = keyof RpcMethods;
`;
}

function printPushTypes({ pushes: { names, shapes } }: SdkDescription): string {
  return `${header("pushes.yaml")}
${shapes.map(printShape).join("\n")}
/** The content of each push, by its name. */
export interface Pushes {
${names.map(({ name, doc, type }) => `${comment(doc, "  ")}  ${literal(name)}: ${printType(type, "  ")};`).join("\n")}
}

export type PushName = keyof Pushes;

/** A push in the form of the socket. */
export type Push = { [Name in PushName]: { jsonrpc: "2.0"; method: Name; params: Pushes[Name] } }[PushName];
`;
}

function byNoun(calls: Call[]): [noun: string, calls: Call[]][] {
  const nouns = new Map<string, Call[]>();
  for (const call of calls) nouns.set(call.noun, [...(nouns.get(call.noun) ?? []), call]);
  return [...nouns];
}

/** The fields of a body that the call sets automatically. */
const SET_BY_CALL = `"stream" | "wait"`;
function inputOf({ kind, body, params }: Call): "body" | "query" | undefined {
  return body ? "body" : params.length > 0 || kind === "stream" ? "query" : undefined;
}

/** The parameters and the type of a REST call's function. */
function signatureOf(call: Call): string {
  const parts = call.path.map(({ name }) => `${camel(name)}: string`);
  const input = inputOf(call);
  if (input === "body" && call.body) {
    const { shape, required } = call.body;
    const type = ["send", "start", "stream"].includes(call.kind) ? `Omit<${shape}, ${SET_BY_CALL}>` : shape;
    parts.push(`body${required ? "" : "?"}: ${type}`);
  }
  if (input === "query") parts.push(`query?: ${call.kind === "stream" ? "{ after?: string }" : `{ ${inline(call)} }`}`);
  parts.push(`options?: ${call.idempotent ? "StartOptions" : "CallOptions"}`);
  return `(${parts.join(", ")}): ${replyType(call)}`;
}

function rpcSignatureOf(call: Call): string {
  const optional = call.params.some(({ required }) => required) ? "" : "?";
  return `(params${optional}: ${paramsName(call)}, options?: ${call.idempotent ? "StartOptions" : "CallOptions"}): ${replyType(call)}`;
}

function anySignature(call: Call): string {
  return call.id.startsWith("rpc.") ? rpcSignatureOf(call) : signatureOf(call);
}

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
function inline({ params }: Call): string {
  return params
    .map(({ name, required, type }) => `${name}${required ? "" : "?"}: ${printType(type)} | undefined`)
    .join("; ");
}

function replyType({ kind, reply, page }: Call): string {
  if (kind === "stream") return "TurnStream";
  const data = reply ? printType(reply) : "void";
  return page ? `Page<${data}, ${printType(page.item)}>` : `Reply<${data}>`;
}

/** The description of a call, with the addition of its kind. */
function docOf({ summary, doc, kind }: Call): string {
  const added = {
    plain: "",
    page: "Await it for one page, or read every page with `for await`.",
    send: "It waits until the turn has ended, however long that takes.",
    start: "It answers at once with the turn's id, while the turn goes on.",
    stream: "The reply comes as events. A stream that is lost goes on where it broke.",
  }[kind];
  return [`${summary}.`, ...(added ? [added] : []), ...(kind === "plain" || kind === "page" ? ["", doc] : [])].join(
    "\n",
  );
}

function printRest(calls: Call[]): string {
  const names = new Set(
    calls.flatMap(({ path, params, body, reply, page, kind }) => [
      ...[...path, ...params].flatMap(({ type }) => (path.some((field) => field.type === type) ? [] : namesIn(type))),
      ...(body ? [body.shape] : []),
      ...(reply && kind !== "stream" ? namesIn(reply) : []),
      ...(page ? namesIn(page.item) : []),
    ]),
  );
  const nouns = byNoun(calls);
  return `${header("openapi.yaml")}
import { bindCalls, type Operation } from "./http.ts";
import type { Page, Reply } from "./reply.ts";
import type { ${[...names].sort().join(", ")} } from "./rest-types.ts";
import { type GatewayOptions, type CallOptions, readSettings, type StartOptions } from "./settings.ts";
import type { TurnStream } from "./turn-stream.ts";

export * from "./common.ts";
export type * from "./rest-types.ts";

${nouns
  .map(
    ([noun, verbs]) => `export interface ${capital(noun)}Calls {
${verbs.map((call) => `${comment(docOf(call), "  ")}  ${call.verb}${signatureOf(call)};`).join("\n")}
}
`,
  )
  .join("\n")}
const operations: Record<string, Record<string, Operation>> = {
${nouns
  .map(
    ([noun, verbs]) => `  ${noun}: {
${verbs.map((call) => `    ${call.verb}: ${printOperation(call)},`).join("\n")}
  },`,
  )
  .join("\n")}
};

/** The REST calls, the webhooks, and the pages with the state of the gateway. */
export class RestClient {
${nouns.map(([noun]) => `  declare readonly ${noun}: ${capital(noun)}Calls;`).join("\n")}

  constructor(options: GatewayOptions = {}) {
    Object.assign(this, bindCalls(readSettings(options), operations));
  }
}
`;
}

function printOperation(call: Call): string {
  const { kind, http, token, text, reply, idempotent, repeatable, page } = call;
  const input = inputOf(call);
  return `{ ${[
    ...(text
      ? [`kind: "text"`]
      : reply === null
        ? [`kind: "empty"`]
        : kind === "plain"
          ? []
          : [`kind: ${literal(kind)}`]),
    ...(http.method === "GET" ? [] : [`method: ${literal(http.method)}`]),
    `path: ${literal(http.path)}`,
    ...(token === "rest" ? [] : [`token: ${literal(token)}`]),
    ...(input ? [`input: ${literal(input)}`] : []),
    ...(idempotent ? ["isIdempotent: true"] : []),
    ...(repeatable && !idempotent && http.method !== "GET" ? ["isRepeatable: true"] : []),
    ...(page ? [`items: ${literal(page.items)}`] : []),
    ...(call.replyStatuses.length > 0 ? [`replyStatuses: [${call.replyStatuses.join(", ")}]`] : []),
  ].join(", ")} }`;
}

function printRpc(calls: Call[]): string {
  const nouns = byNoun(calls);
  const names = new Set(
    calls.flatMap((call) => [
      paramsName(call),
      ...(call.reply ? namesIn(call.reply) : []),
      ...(call.page ? namesIn(call.page.item) : []),
    ]),
  );
  return `${header("openrpc.json")}
import type { Reply, Page } from "./reply.ts";
import { bindMethods, type Method, type RpcCalls, sendByHttp } from "./rpc-calls.ts";
import { openSocket, type SocketCalls } from "./rpc-socket.ts";
import type { ${[...names].sort().join(", ")} } from "./rpc-types.ts";
import { type GatewayOptions, type CallOptions, readSettings, type Settings, type StartOptions } from "./settings.ts";

export * from "./common.ts";
export type * from "./push-types.ts";
export type { BatchCall, BatchResult, RpcCalls } from "./rpc-calls.ts";
export type { SocketCalls } from "./rpc-socket.ts";
export type { ${calls.map(paramsName).sort().join(", ")}, RpcMethod, RpcMethods } from "./rpc-types.ts";
export type * as types from "./rpc-types.ts";

${nouns
  .map(
    ([noun, verbs]) => `export interface ${capital(noun)}Methods {
${verbs.map((call) => `${comment(docOf(call), "  ")}  ${call.verb}${rpcSignatureOf(call)};`).join("\n")}
}
`,
  )
  .join("\n")}
/** The methods by noun and verb. */
export interface RpcNouns {
${nouns.map(([noun]) => `  readonly ${noun}: ${capital(noun)}Methods;`).join("\n")}
}

/** The same methods over a WebSocket, without an HTTP response. */
type OverSocket<Nouns> = {
  [Noun in keyof Nouns]: {
    [Verb in keyof Nouns[Noun]]: Nouns[Noun][Verb] extends (...given: infer Given) => Reply<infer Result>
      ? (...given: Given) => Promise<Result>
      : never;
  };
};

export type RpcSocket = OverSocket<RpcNouns> & RpcCalls & SocketCalls;

const methods: Record<string, Method> = {
${calls
  .map(({ contract, idempotent, page }) => {
    const row = [...(idempotent ? ["isIdempotent: true"] : []), ...(page ? [`items: ${literal(page.items)}`] : [])];
    return `  ${literal(contract)}: {${row.length > 0 ? ` ${row.join(", ")} ` : ""}},`;
  })
  .join("\n")}
};

export interface RpcClient extends RpcNouns, RpcCalls {}

/** The RPC methods over HTTP, and by \`connect\` over a WebSocket. */
export class RpcClient {
  readonly #settings: Settings;

  constructor(options: GatewayOptions = {}) {
    this.#settings = readSettings(options);
    Object.assign(this, bindMethods(this.#settings, methods, sendByHttp(this.#settings)));
  }

  /** A WebSocket with the same methods, and with pushes. The first call opens it. */
  connect(): RpcSocket {
    const { send, calls } = openSocket(this.#settings);
    return { ...bindMethods(this.#settings, methods, send), ...calls } as unknown as RpcSocket;
  }
}
`;
}

const INTRO = `# Every call of \`@agent-gateway/client\`

\`gateway\` is a \`Gateway\`. Types are exported by \`@agent-gateway/client/rest\` and \`@agent-gateway/client/rpc\`. Every call takes \`options\` at
its end: \`signal\`, \`timeoutMs\`, \`maxRetries\`, \`headers\`; a call that starts work also takes \`idempotencyKey\`.`;

const SOCKET = `| call | |
|---|---|
| \`subscribe({ sessions, agents, gateway, deliveries })\` | begins streams, or goes on with them behind a cursor |
| \`unsubscribe({ sessions, agents, gateway, deliveries })\` | ends them |
| \`pushes({ signal })\` | every push from now on, with \`for await\` |
| \`close()\` | closes the socket; \`await using\` does it, too |`;

const FAILURES = `Every failed call throws a \`GatewayError\`. Its \`name\` is one of these, or one of the client's own: \`connection-failed\`, \`timeout\`,
\`not-a-gateway\`, \`no-token\`, \`bad-signature\`, \`closed\`.`;

const EXPORTS = { ".": "index", "./rest": "rest", "./rpc": "rpc", "./webhooks": "webhooks" };

function printPackage(version: string): string {
  return print({
    name: "@agent-gateway/client",
    version,
    description: "Calls an agent gateway: REST, JSON-RPC, WebSocket and webhooks.",
    license: "MIT",
    type: "module",
    engines: { node: ">=20" },
    sideEffects: false,
    exports: Object.fromEntries(
      Object.entries(EXPORTS).map(([path, file]) => [
        path,
        { types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` },
      ]),
    ),
    files: ["dist", "README.md", "api.md"],
  });
}

function printJsr(version: string): string {
  return print({
    name: "@agent-gateway/client",
    version,
    license: "MIT",
    exports: Object.fromEntries(Object.entries(EXPORTS).map(([path, file]) => [path, `./src/${file}.ts`])),
    publish: { include: ["src", "README.md", "api.md"] },
  });
}

function print(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
