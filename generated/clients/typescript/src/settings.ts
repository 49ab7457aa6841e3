// Copied by "npm run generate" from scripts/generate/runtime/typescript/settings.ts; do not edit.
import { AgentGatewayError } from "./error.ts";
import type { Reconnect, SocketClass } from "./socket.ts";

/** A function that sends a request, like the global `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface AgentGatewayOptions {
  /** Where the gateway is, such as `http://127.0.0.1:18789`. Otherwise `AGENT_GATEWAY_URL`, otherwise this machine. */
  url?: string | undefined;
  /** A key for the REST calls. Otherwise `AGENT_GATEWAY_KEY`. */
  restKey?: string | undefined;
  /** A token for the RPC methods. Otherwise `AGENT_GATEWAY_RPC_TOKEN`. */
  rpcToken?: string | undefined;
  /** The token for webhooks. Otherwise `AGENT_GATEWAY_WEBHOOK_TOKEN`. */
  webhookToken?: string | undefined;
  /** The gateway's `webhooks.path`; `/hooks`. */
  webhookPath?: string | undefined;
  /** How long one attempt may take; 120 000. */
  timeoutMs?: number | undefined;
  /** How often a call is tried again; 2. */
  maxRetries?: number | undefined;
  /** Headers for each call. */
  headers?: Record<string, string> | undefined;
  fetch?: Fetch | undefined;
  /** Needed where there is no global WebSocket, as in Node 20. The class of the `ws` package fits. */
  WebSocket?: SocketClass | undefined;
  /** How a lost WebSocket is opened again. */
  reconnect?: Reconnect | undefined;
}

export interface CallOptions {
  /** Gives up the call. Work that it has started goes on. */
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  headers?: Record<string, string> | undefined;
}

export interface StartOptions extends CallOptions {
  /** A key of your own, for a call that you may repeat yourself. */
  idempotencyKey?: string | undefined;
}

export type Token = "rest" | "rpc" | "webhook" | "none";

export interface Settings {
  url: string;
  webhookPath: string;
  timeoutMs: number;
  maxRetries: number;
  headers: Record<string, string>;
  fetch: Fetch;
  WebSocket: SocketClass | undefined;
  reconnect: Reconnect;
  /** The token of a door. Throws an AgentGatewayError, `no-token`, where there is none. */
  tokenOf(token: Exclude<Token, "none">, operation: string): string;
}

const TOKENS = {
  rest: ["a REST key", "restKey", "AGENT_GATEWAY_KEY"],
  rpc: ["an RPC token", "rpcToken", "AGENT_GATEWAY_RPC_TOKEN"],
  webhook: ["the webhook token", "webhookToken", "AGENT_GATEWAY_WEBHOOK_TOKEN"],
} as const;

export function readSettings(options: AgentGatewayOptions = {}): Settings {
  return {
    url: addressOf(options.url ?? variable("AGENT_GATEWAY_URL") ?? "http://127.0.0.1:18789"),
    webhookPath: (options.webhookPath ?? "/hooks").replace(/\/+$/, ""),
    timeoutMs: options.timeoutMs ?? 120_000,
    maxRetries: options.maxRetries ?? 2,
    headers: options.headers ?? {},
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    WebSocket: options.WebSocket ?? (globalThis as { WebSocket?: SocketClass }).WebSocket,
    reconnect: options.reconnect ?? {},
    tokenOf(token, operation) {
      const [what, option, name] = TOKENS[token];
      const value = options[option] ?? variable(name);
      if (value) return value;
      const detail = `This call needs ${what}. Pass \`${option}\` to the client, or set ${name}.`;
      throw new AgentGatewayError("no-token", "No token", { operation, detail });
    },
  };
}

/** The address without a slash at its end. Throws a TypeError that shows how to write it. */
function addressOf(url: string): string {
  const form = "Write it as http://HOST:PORT or https://HOST";
  if (!/^https?:\/\//i.test(url)) {
    const near = url.replace(/^\w+:\/\//, "");
    throw new TypeError(
      `The gateway's url ${JSON.stringify(url)} does not begin with http:// or https://. ${form}, such as http://${near}.`,
    );
  }
  try {
    const { origin, pathname } = new URL(url);
    return origin + pathname.replace(/\/+$/, "");
  } catch {
    throw new TypeError(`The gateway's url ${JSON.stringify(url)} is not a url. ${form}.`);
  }
}

/** A variable of the environment, where there is one: a browser has none. */
const variable = (name: string): string | undefined =>
  (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined;
