import { afterAll } from "vitest";
import { applyReload, diffConfig } from "#config/diff.ts";
import type { LoadedConfig } from "#config/load.ts";
import { settle } from "#config/load.ts";
import { unwritten } from "#config/problems.ts";
import { BUILT, type GatewayOptions, startGateway as start } from "#gateway/gateway.ts";
import { RestClient } from "#generated/clients/typescript/src/rest.ts";
import type { ConfigFile } from "#generated/config-types.ts";
import { createLogger } from "#observe/logger.ts";
import { createHooks } from "./hooks.ts";
import { noteGiven } from "./ledger.ts";
import { checkedFetch, createRest, type Rest } from "./rest.ts";

/** Known secrets that are long enough, and different on every surface. */
export const SECRETS = {
  key: "rest-key-of-the-tests",
  adminKey: "admin-key-of-the-tests",
  rpcToken: "rpc-token-of-the-tests",
  consoleToken: "console-token-of-the-tests",
  webhookToken: "webhook-token-of-the-tests",
} as const;

type LogLine = { level: string; event: string; [field: string]: unknown };

type Some<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [Key in keyof T]?: Some<T[Key]> | undefined }
    : T;

/** A configuration as a person writes it, without the parts that every test repeats. */
export type SomeConfig = Some<ConfigFile>;

export type Start = Omit<GatewayOptions, "loaded" | "logger"> & {
  config?: SomeConfig;
  hidden?: readonly string[];
};

/** The real gateway in this process, on a free port, by default with an echo agent. Its listeners are open when it is returned. */
export async function startGateway({ config = {}, hidden = [], ...options }: Start = {}) {
  const logs: LogLine[] = [];
  const waiting = new Set<() => void>();
  const logger = createLogger({
    level: "debug",
    format: "json",
    write: (text) => {
      for (const line of text.split("\n").filter(Boolean)) {
        const entry = JSON.parse(line) as LogLine;
        logs.push(entry);
        const { requestId, operation, status } = entry;
        // Answers over a socket were validated there, and have no id.

        if (entry.event === "request" && entry.transport !== "websocket" && !isOutside(entry.operation as string))
          noteGiven({ requestId: String(requestId), operation: String(operation), status: Number(status) });
      }
      for (const look of waiting) look();
    },
  });
  logger.hide(hidden);
  let loaded = await settleConfig(config);
  const gateway = await start({ loaded, logger, ...options });
  await gateway.ready;
  const url = gateway.urls[0] as string;

  /** Resolves with the result of a search in the log, as soon as there is one. */
  const until = <T>(find: () => T | undefined | false): Promise<T> =>
    new Promise((resolve) => {
      const look = () => {
        const found = find();
        if (found === undefined || found === false) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  /** The lines so far, including those that are still buffered. */
  const written = (): LogLine[] => {
    void logger.flush();
    return logs;
  };
  const linesOf = (event: string, fields: Record<string, unknown> = {}) =>
    written().filter(
      (line) => line.event === event && Object.entries(fields).every(([name, value]) => line[name] === value),
    );

  return {
    ...SECRETS,
    url,
    gateway,
    /** All lines of the log so far. */
    get logs() {
      return written();
    },
    linesOf,
    until,
    /** The first line of this event with these fields, as soon as it is logged. */
    logged: (event: string, fields?: Record<string, unknown>) => until(() => linesOf(event, fields)[0]),
    /** By operation, with the key of scope `chat`. */
    rest: createRest(url, SECRETS.key),
    /** With the console's token. */
    console: createRest(url, SECRETS.consoleToken),
    /** Webhooks, with the shared token. */
    hooks: createHooks(url),
    /** The generated client, over the checked fetch. */
    client: new RestClient({
      url,
      key: SECRETS.key,
      fetch: (target, init) => checkedFetch(new Request(target, init)),
    }),
    /** Reloads with another configuration, like a changed file. */
    async reload(next: SomeConfig): Promise<void> {
      const { config: before } = loaded;
      const { config: after, ...read } = await settleConfig(next);
      loaded = { ...read, config: applyReload(before, after) };
      await gateway.reconfigure(loaded.config, diffConfig(before, after), "file");
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await gateway[Symbol.asyncDispose]();
      await logger[Symbol.asyncDispose]();
    },
  };
}

/** One gateway for all tests of a file; closed after them. */
export async function shareGateway(options?: Start): Promise<TestGateway> {
  const gateway = await startGateway(options);
  afterAll(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

export type TestGateway = Awaited<ReturnType<typeof startGateway>>;
export type { Rest };

function settleConfig(written: SomeConfig): Promise<LoadedConfig> {
  return settle(unwritten({ ...merge(BASE, written), agents: written.agents ?? BASE.agents }), {
    env: {},
    built: BUILT,
  });
}

const BASE: ConfigFile = {
  gateway: {
    port: 0,
    rest: {
      auth: {
        keys: [
          { name: "tests", key: SECRETS.key },
          { name: "admin", key: SECRETS.adminKey, scopes: ["admin"] },
        ],
      },
    },
    rpc: { auth: { tokens: [{ name: "ops", token: SECRETS.rpcToken, permissions: "*" }] } },
    console: { token: SECRETS.consoleToken },
  },
  // The default limit is lower than the number of requests in a test.
  webhooks: { token: SECRETS.webhookToken, rateLimit: { maxRequests: 0 } },
  agents: { main: { backend: "echo" } },
};

/** Sections in both are merged; for all other values `over` has priority. */
export function merge(base: object, over: object): object {
  return {
    ...base,
    ...Object.fromEntries(
      Object.entries(over).map(([key, value]) => {
        const below = (base as Record<string, unknown>)[key];
        return [key, isRecord(below) && isRecord(value) ? merge(below, value) : value];
      }),
    ),
  };
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Files of the console and of the documentation, and messages of MCP, which the contract does not list. */
function isOutside(operation: string): boolean {
  return operation === "console" || operation === "docs" || /^mcp(\.|$)/.test(operation);
}
