import { resolve as absolute, dirname } from "node:path";
import { hashOf } from "./check-secrets.ts";
import { skillDirOf } from "./check-skills.ts";
import type {
  AgentConfig,
  Config,
  Listener,
  Mapping,
  ModelConfig,
  Program,
  ProviderConfig,
  RateLimit,
  SurfaceName,
  Tls,
  ToolServerConfig,
} from "./config.ts";
import type { CheckedConfig } from "./conform.ts";
import { surfacesOn } from "./surfaces.ts";

const EVERYTHING: readonly SurfaceName[] = ["rest", "rpc", "webhooks", "console", "docs", "metrics"];

/** The parts that the file does not hold itself: its place, the address from outside, certificates and instructions. */
export type Surroundings = {
  file: string | null;
  host: string | undefined;
  port: number | undefined;
  /** The certificate of each listener, by its index. */
  tls: readonly (Tls | undefined)[];
  /** By the names of the agents that have theirs in a file. */
  instructions: ReadonlyMap<string, string>;
};

/** A checked configuration in the form that the gateway uses. */
export function resolveConfig(checked: CheckedConfig, around: Surroundings): Config {
  const { gateway, webhooks, limits, sessions, recorder } = checked;
  const { rest, rpc, console } = gateway;
  const on = surfacesOn(checked);
  const defaultAgent = gateway.defaultAgent ?? (Object.keys(checked.agents)[0] as string);
  const from = around.file === null ? process.cwd() : dirname(absolute(around.file));
  return {
    gateway: {
      listeners: listenersOf(checked, around),
      defaultAgent,
      concurrency: gateway.concurrency,
      connectionsPerAddress: gateway.connectionsPerAddress,
      trustedProxies: gateway.trustedProxies,
      clearTextFrom: gateway.clearTextFrom,
      allowedOrigins: gateway.allowedOrigins,
      announceTo: gateway.announceTo,
      rest: {
        enabled: on.rest,
        auth: { keys: rest.auth.keys.map(({ key, ...of }) => ({ ...of, hash: hashOf(key) })) },
        rateLimit: limitOf(rest.rateLimit),
      },
      openai: { enabled: on.openai },
      rpc: {
        enabled: on.rpc,
        auth: {
          tokens: rpc.auth.tokens.map(({ name, token, permissions }) => ({
            name,
            hash: hashOf(token),
            permissions: typeof permissions === "string" ? [permissions] : permissions,
          })),
        },
        rateLimit: limitOf(rpc.rateLimit),
        socketsPerAddress: rpc.socketsPerAddress,
      },
      console: { enabled: on.console, token: console.token === undefined ? undefined : hashOf(console.token) },
    },
    webhooks: {
      enabled: on.webhooks,
      token: webhookTokens(webhooks.token),
      path: webhooks.path,
      allowedIps: webhooks.allowedIps,
      rateLimit: limitOf(webhooks.rateLimit),
      mappings: mapEach(webhooks.mappings, (mapping) => resolveMapping(mapping, defaultAgent)),
    },
    agents: mapEach(checked.agents, (agent, name) => resolveAgent(agent, from, around.instructions.get(name))),
    providers: mapEach(checked.providers, resolveProvider),
    tools: mapEach(checked.tools, (server) => resolveToolServer(server, from)),
    skills: { dirs: checked.skills.dirs.map(skillDirOf).map((dir) => ({ ...dir, path: absolute(from, dir.path) })) },
    channels: checked.channels,
    store: resolveStore(checked.store, from),
    sessions: {
      retention: milliseconds(sessions.retention),
      webhookRetention: milliseconds(sessions.webhookRetention),
      eventRetention: milliseconds(sessions.eventRetention),
      compactAt: sessions.compactAt,
    },
    limits: {
      ...limits,
      storeBytes: bytes(limits.storeBytes),
      webhookBody: bytes(limits.webhookBody),
      restBody: bytes(limits.restBody),
      rpcBody: bytes(limits.rpcBody),
    },
    recorder: { ...recorder, bytes: bytes(recorder.bytes) },
  };
}

/** The addresses to listen on. A host or port from outside the file wins over its only or its first one. */
export function listenersOf(
  { gateway }: CheckedConfig,
  { host, port, tls }: Pick<Surroundings, "host" | "port" | "tls">,
): Listener[] {
  const written = gateway.listeners ?? [{ host: gateway.host, port: gateway.port, surfaces: [...EVERYTHING] }];
  return written.map((listener, index) => ({
    host: (index === 0 ? host : undefined) ?? listener.host,
    port: (index === 0 ? port : undefined) ?? listener.port,
    tls: tls[index],
    surfaces: listener.surfaces,
  }));
}

/** No requests in a window is no limit. */
const limitOf = (limit: RateLimit | undefined): RateLimit | undefined => (limit?.maxRequests === 0 ? undefined : limit);

/** The name of a webhook token that has none of its own. */
const SHARED = "shared";

function webhookTokens(token: CheckedConfig["webhooks"]["token"]): Config["webhooks"]["token"] {
  const entries = token === undefined ? [] : typeof token === "string" ? [token] : token;
  return entries.map((entry) =>
    typeof entry === "string"
      ? { name: SHARED, hash: hashOf(entry), since: undefined }
      : { name: entry.name ?? SHARED, hash: hashOf(entry.value), since: entry.since },
  );
}

function resolveMapping(mapping: CheckedConfig["webhooks"]["mappings"][string], defaultAgent: string): Mapping {
  const texts = (wanted: unknown): string[] => (Array.isArray(wanted) ? wanted.map(String) : [String(wanted)]);
  return {
    match: mapEach(mapping.match, texts),
    message: mapping.message,
    agent: mapping.agent ?? defaultAgent,
    session: mapping.session,
    model: mapping.model,
    channel: mapping.channel,
    delivery: mapping.delivery,
    verify: mapping.verify && { type: mapping.verify.type, secret: [mapping.verify.secret].flat() },
  };
}

function resolveStore(store: CheckedConfig["store"], from: string): Config["store"] {
  if (store.type === "sqlite") return { type: "sqlite", path: absolute(from, store.path) };
  if (store.type === "postgres") return { type: "postgres", url: [store.url].flat() };
  return { type: "memory" };
}

type CheckedAgent = CheckedConfig["agents"][string];
type CheckedModel = Exclude<CheckedAgent["models"], readonly string[]>[string];

/** Paths begin at `from`. */
const resolveAgent = (agent: CheckedAgent, from: string, instructions = agent.instructions): AgentConfig => {
  const { every } = agent.heartbeat;
  const { timeouts, http, a2a, command, acp, models } = agent;
  const table = Array.isArray(models) ? {} : mapEach(models as Record<string, CheckedModel>, resolveModel);
  return {
    backend: agent.backend,
    description: agent.description,
    instructions,
    model: agent.model,
    models: Array.isArray(models) ? models : Object.keys(models),
    modelTable: table,
    fallbacks: agent.fallbacks,
    summaryModel: agent.summaryModel,
    skills: agent.skills,
    tools: agent.tools,
    steps: agent.steps,
    heartbeat: { every: every === "off" ? undefined : milliseconds(every) },
    concurrency: agent.concurrency,
    deadline: milliseconds(agent.deadline),
    timeouts: {
      connect: milliseconds(timeouts.connect),
      firstByte: milliseconds(timeouts.firstByte),
      silence: milliseconds(timeouts.silence),
    },
    echo: { ...agent.echo, fail: agent.echo.fail },
    http: http && { url: http.url, headers: http.headers, secret: http.secret, history: http.history },
    a2a: a2a && { url: a2a.url, headers: a2a.headers },
    command: command && { ...programOf(command, from), output: command.output },
    acp: acp && {
      ...programOf(acp, from),
      permissions: acp.permissions,
      idle: milliseconds(acp.idle),
      processes: acp.processes,
    },
  };
};

const resolveModel = ({ provider, model, ...limits }: CheckedModel): ModelConfig => ({
  provider,
  model,
  contextTokens: limits.contextTokens,
  maxOutputTokens: limits.maxOutputTokens,
  temperature: limits.temperature,
  options: limits.options,
  price: limits.price && { ...limits.price, cachedInput: limits.price.cachedInput },
});

const resolveProvider = (provider: CheckedConfig["providers"][string]): ProviderConfig => ({
  type: provider.type,
  package: provider.type === "ai-sdk" ? provider.package : undefined,
  settings: provider.type === "ai-sdk" ? provider.settings : undefined,
  apiKey: provider.apiKey,
  baseUrl: provider.baseUrl,
  headers: provider.headers,
});

const resolveToolServer = (server: CheckedConfig["tools"][string], from: string): ToolServerConfig => {
  const limits = { callTimeout: milliseconds(server.callTimeout), maxOutput: bytes(server.maxOutput) };
  return server.type === "stdio"
    ? { type: "stdio", ...programOf(server, from), ...limits }
    : { type: "http", url: server.url, headers: server.headers, ...limits };
};

type CheckedProgram = { run: readonly string[]; cwd?: string | undefined; env: Readonly<Record<string, string>> };

const programOf = ({ run, cwd, env }: CheckedProgram, from: string): Program => ({
  run,
  cwd: absolute(from, cwd ?? "."),
  env,
});

const mapEach = <T, U>(record: Readonly<Record<string, T>>, change: (value: T, key: string) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));

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
