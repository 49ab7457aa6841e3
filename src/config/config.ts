import { createHash } from "node:crypto";
import { resolve as absolute, dirname } from "node:path";
import type { Config as CheckedConfig } from "#generated/config-types.ts";
import { eventsOf } from "#kit/notifications.ts";

export type { CheckedConfig };

/** The configuration as the gateway uses it: complete, valid and frozen, with durations in milliseconds, sizes in bytes, and tokens as hashes. */
export type Config = Frozen<ReturnType<typeof resolveConfig>>;
export type Listener = Config["gateway"]["listeners"][number];
export type SurfaceName = Listener["surfaces"][number];
export type AgentConfig = Config["agents"][string];
export type ProviderConfig = Config["providers"][string];
export type ToolServerConfig = Config["tools"][string];
export type BudgetConfig = Config["budgets"][string];
export type ScheduleConfig = Config["schedules"][string];
export type ChannelConfig = Config["channels"][string];
export type NotifyConfig = Config["notify"][string];

/** Makes all fields read-only, and optional values undefined. */
export type Frozen<T> = T extends readonly (infer One)[]
  ? readonly Frozen<One>[]
  : T extends object
    ? { readonly [Key in keyof Required<T>]: Frozen<T[Key]> }
    : T;

/** The contents of the PEM files. They are read together, so the key always belongs to the certificate. */
export type Tls = { cert: string; key: string; hsts: boolean };

/** The parts that are not in the file: its path, an overriding address, certificates and instructions. */
type Surroundings = {
  file: string | null;
  host: string | undefined;
  port: number | undefined;
  /** The certificate of each listener, by its index. */
  tls: readonly (Tls | undefined)[];
  /** The instructions of agents with `instructionsFile`, by agent. */
  instructions: ReadonlyMap<string, string>;
};

/** A checked configuration in the form that the gateway uses. */
export function resolveConfig(checked: CheckedConfig, around: Surroundings) {
  const { webhooks, limits, sessions, recorder } = checked;
  const { host, port, rest, rpc, console, ...gateway } = checked.gateway;
  const on = surfacesOn(checked);
  const defaultAgent = gateway.defaultAgent ?? (Object.keys(checked.agents)[0] as string);
  const from = around.file === null ? process.cwd() : dirname(absolute(around.file));
  return {
    gateway: {
      ...gateway,
      /** At least one. Without `gateway.listeners` it is the one of `gateway.host` and `gateway.port`. */
      listeners: listenersOf(checked, around),
      defaultAgent,
      rest: {
        enabled: on.rest,
        auth: { keys: rest.auth.keys.map(({ key, ...of }) => ({ ...of, hash: hashOf(key) })) },
        rateLimit: limitOf(rest.rateLimit),
      },
      /** Served by the listeners of REST. */
      openai: { enabled: on.openai },
      /** Served by the listeners of REST. Without `agents` it offers all of them. */
      mcp: { ...gateway.mcp, enabled: on.mcp },
      rpc: {
        ...rpc,
        enabled: on.rpc,
        auth: {
          tokens: rpc.auth.tokens.map(({ token, permissions, ...of }) => {
            return { ...of, hash: hashOf(token), permissions: [permissions].flat() };
          }),
        },
        rateLimit: limitOf(rpc.rateLimit),
      },
      console: { enabled: on.console, token: console.token === undefined ? undefined : hashOf(console.token) },
    },
    webhooks: {
      ...webhooks,
      enabled: on.webhooks,
      /** A new and an old token may have the same name while senders change over. */
      token: [webhooks.token ?? []].flat().map((entry) => {
        const { name = "shared", value, since } = typeof entry === "string" ? { value: entry } : entry;
        return { name, hash: hashOf(value), since };
      }),
      rateLimit: limitOf(webhooks.rateLimit),
      /** In the order in which they are tried. */
      mappings: mapEach(webhooks.mappings, (mapping) => ({
        ...mapping,
        /** Lookup path → the allowed texts. */
        match: mapEach(mapping.match, (wanted) => [wanted].flat().map(String)),
        agent: mapping.agent ?? defaultAgent,
        coalesce: mapping.coalesce && coalesceOf(mapping.coalesce),
        /** All secrets are valid: a new and an old one while senders change over. */
        verify: mapping.verify && { url: undefined, ...mapping.verify, secret: [mapping.verify.secret].flat() },
      })),
    },
    /** In the order of the file. */
    agents: mapEach(checked.agents, (agent, name) => resolveAgent(agent, from, around.instructions.get(name))),
    providers: mapEach(checked.providers, (provider) => ({ package: undefined, settings: undefined, ...provider })),
    tools: mapEach(checked.tools, (server) => {
      const limits = { callTimeout: milliseconds(server.callTimeout), maxOutput: bytes(server.maxOutput) };
      return server.type === "stdio" ? { ...server, ...programOf(server, from), ...limits } : { ...server, ...limits };
    }),
    skills: { dirs: checked.skills.dirs.map(skillDirOf).map((dir) => ({ ...dir, path: absolute(from, dir.path) })) },
    channels: checked.channels,
    notify: mapEach(checked.notify, (endpoint) => ({
      ...endpoint,
      /** The names of its events, without patterns. */
      events: [...new Set(endpoint.events.flatMap(eventsOf))],
    })),
    store: resolveStore(checked.store, from),
    sessions: {
      ...sessions,
      retention: milliseconds(sessions.retention),
      webhookRetention: milliseconds(sessions.webhookRetention),
      eventRetention: milliseconds(sessions.eventRetention),
    },
    limits: {
      ...limits,
      storeBytes: bytes(limits.storeBytes),
      webhookBody: bytes(limits.webhookBody),
      restBody: bytes(limits.restBody),
      rpcBody: bytes(limits.rpcBody),
      toolArguments: bytes(limits.toolArguments),
      toolMessages: bytes(limits.toolMessages),
    },
    budgets: checked.budgets,
    /** In the order of the file. */
    schedules: mapEach(checked.schedules, ({ every, ...schedule }) => ({
      ...schedule,
      agent: schedule.agent ?? defaultAgent,
      every: every === undefined ? undefined : milliseconds(every),
      missedWithin: milliseconds(schedule.missedWithin),
    })),
    recorder: { ...recorder, bytes: bytes(recorder.bytes) },
  };
}

const EVERYTHING = ["rest", "rpc", "webhooks", "console", "docs", "metrics"] as const;

/** The addresses to listen on. A host or port of an option or a variable replaces that of the first one. */
export function listenersOf(
  { gateway }: CheckedConfig,
  { host, port, tls }: Pick<Surroundings, "host" | "port" | "tls">,
) {
  return (gateway.listeners ?? [{ host: gateway.host, port: gateway.port, surfaces: [...EVERYTHING] }]).map(
    (listener, index) => ({
      host: (index === 0 ? host : undefined) ?? listener.host,
      port: (index === 0 ? port : undefined) ?? listener.port,
      tls: tls[index],
      surfaces: listener.surfaces,
    }),
  );
}

/** The surfaces that have a secret. The console's token also switches on REST and RPC, because its pages use them. */
export function surfacesSecured({ gateway, webhooks }: CheckedConfig) {
  const { rest, rpc, console } = gateway;
  const byConsole = console.enabled !== false && console.token !== undefined;
  const isVerified = Object.values(webhooks.mappings).some(({ verify }) => verify !== undefined);
  return {
    rest: rest.auth.keys.length > 0 || byConsole,
    rpc: rpc.auth.tokens.length > 0 || byConsole,
    webhooks: (webhooks.token?.length ?? 0) > 0 || isVerified,
    console: console.token !== undefined,
  };
}

/** A surface is on if it has a secret and is not switched off. */
export function surfacesOn(config: CheckedConfig) {
  const secured = surfacesSecured(config);
  const { rest, openai, mcp, rpc, console } = config.gateway;
  const isRestOn = secured.rest && rest.enabled !== false;
  return {
    rest: isRestOn,
    openai: isRestOn && openai.enabled,
    mcp: isRestOn && mcp.enabled,
    rpc: secured.rpc && rpc.enabled !== false,
    webhooks: secured.webhooks && config.webhooks.enabled !== false,
    console: secured.console && console.enabled !== false,
  };
}

/** The stored form of a token: SHA-256, in hexadecimal digits. */
export function hashOf(token: string): string {
  const hashed = /^sha256:([0-9a-fA-F]{64})$/.exec(token)?.[1];
  return hashed?.toLowerCase() ?? createHash("sha256").update(token).digest("hex");
}

/** The wait of a burst, with the defaults of the schema for a draft that leaves them out. */
export function coalesceOf({ key, window = "30s", maxWait = "5m", take = "last" }: WrittenCoalesce) {
  return { key, windowMs: milliseconds(window), maxWaitMs: milliseconds(maxWait), take };
}
export type WrittenCoalesce = {
  key: string;
  window?: string | undefined;
  maxWait?: string | undefined;
  take?: "last" | "all" | undefined;
};

/** Zero requests in a window mean that there is no limit. */
function limitOf<Limit extends { maxRequests: number }>(limit: Limit | undefined): Limit | undefined {
  return limit?.maxRequests === 0 ? undefined : limit;
}

/** Paths are relative to `from`. */
function resolveAgent(agent: CheckedConfig["agents"][string], from: string, instructions = agent.instructions) {
  const { deadline, heartbeat, timeouts, command, acp, models, instructionsFile, ...rest } = agent;
  const table = Array.isArray(models) ? {} : models;
  return {
    ...rest,
    instructions,
    models: Array.isArray(models) ? models : Object.keys(models),
    /** The models of the names in `models`; only for the backend `model`. */
    modelTable: table,
    /** Undefined if it is off. */
    heartbeat: { every: heartbeat.every === "off" ? undefined : milliseconds(heartbeat.every) },
    deadline: milliseconds(deadline),
    timeouts: {
      connect: milliseconds(timeouts.connect),
      firstByte: milliseconds(timeouts.firstByte),
      silence: milliseconds(timeouts.silence),
    },
    command: command && { ...command, ...programOf(command, from) },
    acp: acp && { ...acp, ...programOf(acp, from), idle: milliseconds(acp.idle) },
  };
}

/** The address of `postgres` is a secret. There may be several. */
function resolveStore(store: CheckedConfig["store"], from: string) {
  if (store.type === "sqlite") return { ...store, path: absolute(from, store.path) };
  return store.type === "postgres" ? { ...store, url: [store.url].flat() } : store;
}

/** A folder of skills, also written as only its path. An optional one may be missing. */
export function skillDirOf(dir: CheckedConfig["skills"]["dirs"][number]): { path: string; optional: boolean } {
  return typeof dir === "string" ? { path: dir, optional: false } : { path: dir.path, optional: dir.optional === true };
}

function programOf({ run, cwd, env }: { run: string[]; cwd?: string; env: Record<string, string> }, from: string) {
  return {
    run,
    cwd: absolute(from, cwd ?? "."),
    env,
  };
}

function mapEach<T, U>(record: Readonly<Record<string, T>>, change: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}

const MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const BYTES = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const;

/** `30m` in milliseconds. The schema has checked the form. */
export function milliseconds(text: string): number {
  const [, amount, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Number(amount) * MS[unit as keyof typeof MS];
}

/** `256KiB`, or a number, in bytes. The schema has checked the form. */
function bytes(size: string | number): number {
  if (typeof size === "number") return size;
  const [, amount, unit] = /^(\d+) ?(B|KiB|MiB|GiB)$/.exec(size) ?? [];
  return Number(amount) * BYTES[unit as keyof typeof BYTES];
}
