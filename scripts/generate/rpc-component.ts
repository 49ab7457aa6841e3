import { key, literal } from "./json.ts";
import { comment, header } from "./output.ts";

/**
 * Our component for @open-rpc/generator: it prints what has one entry for each method. The generator hands templates the
 * document with its references unfolded; of that only names and extensions are used, the shapes have types of their own.
 */
type Param = { name: string; required?: boolean };
type Method = { name: string; summary?: string; params: Param[]; "x-errors"?: string[]; "x-idempotent"?: boolean };
type Template = (given: { openrpcDocument: { methods: Method[] } }) => string;

const from = header("openrpc.json");

const printHandlers: Template = ({ openrpcDocument: { methods } }) => `${from}
import type { RpcMethods } from "./rpc-types.ts";

/** One body for each method; it may answer at once. \`Ctx\` is what the server gives a handler beside the params. */
export interface RpcHandlers<Ctx> {
${methods
  .map(
    ({ name, summary = "" }) =>
      `${comment(summary, "  ")}  ${literal(name)}: (params: RpcMethods[${literal(name)}]["params"], ctx: Ctx) => Answer<RpcMethods[${literal(name)}]["result"]>;`,
  )
  .join("\n")}
}

type Answer<Result> = Result | Promise<Result>;
`;

const printMethods: Template = ({ openrpcDocument: { methods } }) => `${from}
import type { ErrorName } from "./errors.ts";
import type { RpcMethod } from "./rpc-types.ts";

export interface MethodRow {
  /** The permission that a token needs to call it. */
  permission: RpcMethod;
  /** Every error that it can answer with. */
  errors: readonly ErrorName[];
  params: readonly string[];
  required: readonly string[];
  /** Takes \`idempotencyKey\` and answers \`replayed\`. */
  idempotent: boolean;
}

export const methods = {
${methods
  .map(
    ({ name, params, "x-errors": errors = [], "x-idempotent": idempotent = false }) => `  ${literal(name)}: {
    permission: ${literal(name)},
    errors: [${errors.map(literal).join(", ")}],
    params: [${params.map((param) => literal(param.name)).join(", ")}],
    required: [${params
      .filter((param) => param.required)
      .map((param) => literal(param.name))
      .join(", ")}],
    idempotent: ${idempotent},
  },`,
  )
  .join("\n")}
} as const satisfies Record<RpcMethod, MethodRow>;
`;

/** The methods by their nouns: \`agent.list\` becomes \`agent: { list }\`. */
const byNoun = (methods: Method[]): [noun: string, methods: { verb: string; method: Method }[]][] => {
  const nouns = new Map<string, { verb: string; method: Method }[]>();
  for (const method of methods) {
    const [noun = "", verb = ""] = method.name.split(".");
    nouns.set(noun, [...(nouns.get(noun) ?? []), { verb, method }]);
  }
  return [...nouns];
};

const printClient: Template = ({ openrpcDocument: { methods } }) => `${from}
import type { RpcMethods } from "../rpc-types.ts";
import { type CallOptions, type Calls, createCalls } from "./rpc-calls.ts";
import { type Fetch, httpTransport } from "./rpc-http.ts";
import { type SocketCalls, socketTransport } from "./rpc-socket.ts";
import type { Reconnect, SocketClass } from "./socket.ts";

export type { Push, PushName, Pushes } from "../push-types.ts";
export type { RpcMethod, RpcMethods } from "../rpc-types.ts";
export { ConnectionError } from "./connection-error.ts";
export type { BatchCall, BatchResult, CallOptions } from "./rpc-calls.ts";
export { RpcError } from "./rpc-error.ts";
export type { Reconnect, SocketClass, SocketLike } from "./socket.ts";
export type { Subscribe, Unsubscribe } from "./subscriptions.ts";

/** Each method as a function of its params. */
export interface Methods {
${byNoun(methods)
  .map(
    ([noun, verbs]) => `  ${key(noun)}: {
${verbs
  .map(({ verb, method: { name, summary = "", params } }) => {
    const optional = params.some(({ required }) => required) ? "" : "?";
    return `${comment(summary, "    ")}    ${key(verb)}(params${optional}: RpcMethods[${literal(name)}]["sent"], options?: CallOptions): Promise<RpcMethods[${literal(name)}]["result"]>;`;
  })
  .join("\n")}
  };`,
  )
  .join("\n")}
}

export interface RpcClient extends Calls, Methods {}
export interface RpcSocketClient extends RpcClient, SocketCalls {}

interface Common {
  token: string;
  /** How long to wait for an answer; 120 000. */
  timeoutMs?: number;
}

export interface HttpOptions extends Common {
  transport?: "http";
  /** For instance \`http://127.0.0.1:18789/rpc\`. */
  url: string;
  fetch?: Fetch;
}

export interface WebSocketOptions extends Common {
  transport: "websocket";
  /** For instance \`ws://127.0.0.1:18789/rpc/ws\`. */
  url: string;
  /** Needed where there is no global WebSocket, as in Node 20; the class of the \`ws\` package fits. */
  WebSocket?: SocketClass;
  reconnect?: Reconnect;
}

/** A client for the gateway's methods, over HTTP or, with pushes, over a WebSocket. */
export function createRpcClient(options: WebSocketOptions): RpcSocketClient;
export function createRpcClient(options: HttpOptions): RpcClient;
export function createRpcClient(options: HttpOptions | WebSocketOptions): RpcClient | RpcSocketClient {
  const { url, token, timeoutMs = 120_000 } = options;
  if (options.transport !== "websocket") {
    const { fetch = globalThis.fetch } = options;
    return withMethods(createCalls(httpTransport({ url, token, fetch }), timeoutMs));
  }
  const { WebSocket = (globalThis as { WebSocket?: SocketClass }).WebSocket, reconnect = {} } = options;
  if (WebSocket === undefined) throw new TypeError("there is no global WebSocket here: give one as an option");
  const socket = socketTransport({ url, token, WebSocket, reconnect });
  return { ...withMethods(createCalls(socket, timeoutMs)), ...socket };
}

function withMethods(calls: Calls): RpcClient {
  const { call } = calls;
  return {
    ...calls,
${byNoun(methods)
  .map(
    ([noun, verbs]) => `    ${key(noun)}: {
${verbs.map(({ verb, method: { name } }) => `      ${key(verb)}: (params, options) => call(${literal(name)}, params, options),`).join("\n")}
    },`,
  )
  .join("\n")}
  };
}
`;

/** The generator asks for a default export. */
export default {
  hooks: {
    templateFiles: {
      typescript: [
        { path: "rpc-handlers.ts", template: printHandlers },
        { path: "methods.ts", template: printMethods },
        { path: "clients-rpc.ts", template: printClient },
      ],
    },
  },
  staticPath: () => undefined,
};
