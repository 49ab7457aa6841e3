import { createHash } from "node:crypto";
import { resolve as absolute, dirname } from "node:path";
import type { Config as CheckedConfig } from "#generated/config-types.ts";

export type { CheckedConfig };

/** The configuration as the gateway uses it: whole, checked, frozen; spans in milliseconds, sizes in bytes, tokens as hashes. */
export type Config = Frozen<ReturnType<typeof resolveConfig>>;
export type Listener = Config["gateway"]["listeners"][number];
export type SurfaceName = Listener["surfaces"][number];
export type AgentConfig = Config["agents"][string];
export type ProviderConfig = Config["providers"][string];
export type ToolServerConfig = Config["tools"][string];
export type ChannelConfig = Config["channels"][string];

/** Nothing can be changed, and optional values are undefined. */
export type Frozen<T> = T extends readonly (infer One)[]
  ? readonly Frozen<One>[]
  : T extends object
    ? { readonly [Key in keyof Required<T>]: Frozen<T[Key]> }
    : T;

/** The files' contents, PEM, read together: a certificate never meets the key of another. */
export type Tls = { cert: string; key: string; hsts: boolean };

/** The parts that the file does not hold itself: its place, the address from outside, certificates and instructions. */
type Surroundings = {
  file: string | null;
  host: string | undefined;
  port: number | undefined;
  /** The certificate of each listener, by its index. */
  tls: readonly (Tls | undefined)[];
  /** By the names of the agents that have theirs in a file. */
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
      /** At least one. `gateway.host` and `gateway.port` make the only one where the file lists none. */
      listeners: listenersOf(checked, around),
      defaultAgent,
      rest: {
        enabled: on.rest,
        auth: { keys: rest.auth.keys.map(({ key, ...of }) => ({ ...of, hash: hashOf(key) })) },
        rateLimit: limitOf(rest.rateLimit),
      },
      /** Served where REST is. */
      openai: { enabled: on.openai },
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
      /** Several may have one name: a new one and an old one while they change. */
      token: [webhooks.token ?? []].flat().map((entry) => {
        const { name = "shared", value, since } = typeof entry === "string" ? { value: entry } : entry;
        return { name, hash: hashOf(value), since };
      }),
      rateLimit: limitOf(webhooks.rateLimit),
      /** In the order in which they are tried. */
      mappings: mapEach(webhooks.mappings, (mapping) => ({
        ...mapping,
        /** Lookup path → the texts, any of which it may have. */
        match: mapEach(mapping.match, (wanted) => [wanted].flat().map(String)),
        agent: mapping.agent ?? defaultAgent,
        /** Any of the secrets is good: a new one and an old one while they change. */
        verify: mapping.verify && { type: mapping.verify.type, secret: [mapping.verify.secret].flat() },
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
    recorder: { ...recorder, bytes: bytes(recorder.bytes) },
  };
}

const EVERYTHING = ["rest", "rpc", "webhooks", "console", "docs", "metrics"] as const;

/** The addresses to listen on. A host or port from outside the file wins over its only or its first one. */
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

/** The surfaces that have a secret. The console's token opens REST and RPC too: its pages live on them. */
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

/** A surface is on when there is a secret for it and nobody switched it off. */
export function surfacesOn(config: CheckedConfig) {
  const secured = surfacesSecured(config);
  const { rest, openai, rpc, console } = config.gateway;
  const isRestOn = secured.rest && rest.enabled !== false;
  return {
    rest: isRestOn,
    openai: isRestOn && openai.enabled,
    rpc: secured.rpc && rpc.enabled !== false,
    webhooks: secured.webhooks && config.webhooks.enabled !== false,
    console: secured.console && console.enabled !== false,
  };
}

/** A token as it is kept: SHA-256, in hexadecimal digits. */
export function hashOf(token: string): string {
  const hashed = /^sha256:([0-9a-fA-F]{64})$/.exec(token)?.[1];
  return hashed?.toLowerCase() ?? createHash("sha256").update(token).digest("hex");
}

/** No requests in a window is no limit. */
function limitOf<Limit extends { maxRequests: number }>(limit: Limit | undefined): Limit | undefined {
  return limit?.maxRequests === 0 ? undefined : limit;
}

/** Paths begin at `from`. */
function resolveAgent(agent: CheckedConfig["agents"][string], from: string, instructions = agent.instructions) {
  const { deadline, heartbeat, timeouts, command, acp, models, instructionsFile, ...rest } = agent;
  const table = Array.isArray(models) ? {} : models;
  return {
    ...rest,
    instructions,
    models: Array.isArray(models) ? models : Object.keys(models),
    /** The models that the names of `models` stand for; only a `model` backend has them. */
    modelTable: table,
    /** Undefined where it is off. */
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

/** The secret of `postgres` is its address, of which the gateway may be given several. */
function resolveStore(store: CheckedConfig["store"], from: string) {
  if (store.type === "sqlite") return { ...store, path: absolute(from, store.path) };
  return store.type === "postgres" ? { ...store, url: [store.url].flat() } : store;
}

/** A folder of skills, which may be written as its path alone. An optional one need not be there. */
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

/** `30m` in milliseconds. The schema has let nothing else through. */
function milliseconds(text: string): number {
  const [, amount, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Number(amount) * MS[unit as keyof typeof MS];
}

/** `256KiB`, or a number, in bytes. The schema has let nothing else through. */
function bytes(size: string | number): number {
  if (typeof size === "number") return size;
  const [, amount, unit] = /^(\d+) ?(B|KiB|MiB|GiB)$/.exec(size) ?? [];
  return Number(amount) * BYTES[unit as keyof typeof BYTES];
}
