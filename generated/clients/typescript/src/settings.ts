// Copied by "npm run generate" from scripts/generate/runtime/typescript/settings.ts; do not edit.
import { checkNumbers } from "./call-options.ts";
import { GatewayError } from "./error.ts";

/** A function that sends a request, like the global `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** The part of a WebSocket that the client uses. A browser's, Node's own (from 22) and the `ws` package's all have it. */
export interface SocketLike {
  send(data: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number; reason: string }) => void): void;
  addEventListener(type: "error", listener: (event: { message?: string }) => void): void;
}

export type SocketClass = new (url: string, protocols: string[]) => SocketLike;

export interface Reconnect {
  /** The number of attempts to reopen a lost connection before the readers of pushes get an error; 10. */
  attempts?: number;
  /** The first pause, doubled at each attempt; 250. */
  minMs?: number;
  /** The longest pause; 30 000. */
  maxMs?: number;
  /** Called at the start of each pause, so that a page can show the time of the next attempt. */
  onPause?: (ms: number) => void;
}

export interface GatewayOptions {
  /** The gateway's address, such as `http://127.0.0.1:18789`. By default `GATEWAY_URL`, or else this machine. */
  url?: string | undefined;
  /** A key for the REST calls. Otherwise `REST_API_KEY`. */
  key?: string | undefined;
  /** @deprecated Use `key`. */
  restKey?: string | undefined;
  /** A token for the RPC methods. Otherwise `RPC_TOKEN`. */
  rpcToken?: string | undefined;
  /** The token for webhooks. Otherwise `WEBHOOK_TOKEN`. */
  webhookToken?: string | undefined;
  /** The gateway's `webhooks.path`; `/hooks`. */
  webhookPath?: string | undefined;
  /** How long one attempt may take; 120 000. */
  timeoutMs?: number | undefined;
  /** The number of retries; 2. */
  maxRetries?: number | undefined;
  /** Headers for each call. */
  headers?: Record<string, string> | undefined;
  /** The client makes only calls without a token, such as `ops.healthz`. Otherwise a client without a token is refused. */
  anonymous?: boolean | undefined;
  fetch?: Fetch | undefined;
  /** Required without a global WebSocket, as in Node 20. The class of the `ws` package works. */
  WebSocket?: SocketClass | undefined;
  /** The settings for reopening a lost WebSocket. */
  reconnect?: Reconnect | undefined;
}

/** @deprecated Use `GatewayOptions`. */
export type AgentGatewayOptions = GatewayOptions;

export interface CallOptions {
  /** Aborts the call. Work that it has started continues. */
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  headers?: Record<string, string> | undefined;
}

export interface StartOptions extends CallOptions {
  /** Your own idempotency key, for a call that you may repeat. */
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
  /** The token of a surface. Throws a GatewayError, `no-token`, if there is none. */
  tokenOf(token: Exclude<Token, "none">, operation: string): string;
}

const TOKENS = {
  rest: ["a REST key", "key", "REST_API_KEY"],
  rpc: ["an RPC token", "rpcToken", "RPC_TOKEN"],
  webhook: ["the webhook token", "webhookToken", "WEBHOOK_TOKEN"],
} as const;

/** All options, so that misspelt ones are refused. */
const OPTIONS: Record<keyof GatewayOptions, true> = {
  url: true,
  key: true,
  rpcToken: true,
  webhookToken: true,
  webhookPath: true,
  timeoutMs: true,
  maxRetries: true,
  headers: true,
  anonymous: true,
  fetch: true,
  WebSocket: true,
  reconnect: true,
  restKey: true,
};
const RECONNECT: Record<keyof Reconnect, true> = { attempts: true, minMs: true, maxMs: true, onPause: true };

/** Throws a TypeError that names the options. */
function checkOptions(what: string, options: unknown, known: Record<string, true>): void {
  const names = Object.keys(known).filter((name) => name !== "restKey");
  const list = `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new TypeError(`${what} takes an object with the options ${list}.`);
  for (const name of Object.keys(options))
    if (!Object.hasOwn(known, name)) throw new TypeError(`${what} has no option \`${name}\`. Its options are ${list}.`);
}

export function readSettings(options: GatewayOptions = {}): Settings {
  checkOptions("The client", options, OPTIONS);
  if (options.reconnect !== undefined) checkOptions("`reconnect` of the client", options.reconnect, RECONNECT);
  checkNumbers(options);
  const url = addressOf(options.url ?? variable("GATEWAY_URL") ?? "http://127.0.0.1:18789");
  const tokens = {
    rest: tokenIn("key", options.key ?? options.restKey) ?? variable("REST_API_KEY"),
    rpc: tokenIn("rpcToken", options.rpcToken) ?? variable("RPC_TOKEN"),
    webhook: tokenIn("webhookToken", options.webhookToken) ?? variable("WEBHOOK_TOKEN"),
  };
  if (!options.anonymous && !tokens.rest && !tokens.rpc && !tokens.webhook)
    throw noToken(
      "The client has no token. Pass `key`, `rpcToken` or `webhookToken`, or set REST_API_KEY, RPC_TOKEN or WEBHOOK_TOKEN. " +
        "A client for calls that need none, such as `ops.healthz`, takes `anonymous: true`.",
    );
  return {
    url,
    webhookPath: (options.webhookPath ?? "/hooks").replace(/\/+$/, ""),
    timeoutMs: options.timeoutMs ?? 120_000,
    maxRetries: options.maxRetries ?? 2,
    headers: options.headers ?? {},
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    WebSocket: options.WebSocket ?? (globalThis as { WebSocket?: SocketClass }).WebSocket,
    reconnect: options.reconnect ?? {},
    tokenOf(token, operation) {
      const value = tokens[token];
      if (value) return value;
      const [what, option, name] = TOKENS[token];
      throw noToken(`This call needs ${what}. Pass \`${option}\` to the client, or set ${name}.`, operation);
    },
  };
}

function noToken(detail: string, operation?: string): GatewayError {
  return new GatewayError("no-token", "No token", { operation, detail });
}

/** A token as it was passed. The error must not show it, as `fetch` would. */
function tokenIn(option: string, token: string | undefined): string | undefined {
  if (token && (token !== token.trim() || [...token].some((char) => char < " " || char === "\x7f")))
    throw new TypeError(`\`${option}\` holds a control character, or a space at an end.`);
  if (token && [...token].some((char) => char > "\xff"))
    throw new TypeError(`\`${option}\` holds a character that HTTP cannot carry in a header.`);
  return token || undefined;
}

/** The address without a slash at its end. Throws a TypeError that shows how to write it. */
function addressOf(url: string): string {
  // An error shows no user, password or query.
  const shown = url.replace(/^(\w+:\/\/)?.*@/s, "$1").replace(/[?#].*/s, "");
  const form = "Write it as http://HOST:PORT or https://HOST";
  if (!/^https?:\/\//i.test(url)) {
    const near = shown.replace(/^\w+:\/\//, "");
    throw new TypeError(
      `The gateway's url ${JSON.stringify(shown)} does not begin with http:// or https://. ${form}, such as http://${near}.`,
    );
  }
  try {
    const { origin, pathname } = new URL(url);
    return origin + pathname.replace(/\/+$/, "");
  } catch {
    throw new TypeError(`The gateway's url ${JSON.stringify(shown)} is not a url. ${form}.`);
  }
}

/** Old names of variables. They are read for one more version, with a warning. */
const OLD_NAMES = {
  GATEWAY_URL: "AGENT_GATEWAY_URL",
  REST_API_KEY: "AGENT_GATEWAY_KEY",
  RPC_TOKEN: "AGENT_GATEWAY_RPC_TOKEN",
  WEBHOOK_TOKEN: "AGENT_GATEWAY_WEBHOOK_TOKEN",
};
const warned = new Set<string>();

type Process = { env?: Record<string, string | undefined>; emitWarning?: (words: string, type: string) => void };

/** A variable of the environment, if there is one: a browser has none. An empty variable is not set. */
function variable(name: keyof typeof OLD_NAMES): string | undefined {
  const { process } = globalThis as { process?: Process };
  const old = OLD_NAMES[name];
  const value = process?.env?.[name] || process?.env?.[old] || undefined;
  if (value === undefined || process?.env?.[name] || warned.has(old)) return value;
  warned.add(old);
  const words = `${old} is deprecated. Set ${name}.`;
  process?.emitWarning?.(words, "DeprecationWarning");
  return value;
}
