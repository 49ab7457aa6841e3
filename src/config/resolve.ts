import { resolve as absolute, dirname } from "node:path";
import { hashOf } from "./check-secrets.ts";
import { skillDirOf } from "./check-skills.ts";
import type { Config, Listener, Mapping, RateLimit, SurfaceName, Tls } from "./config.ts";
import type { CheckedConfig } from "./conform.ts";
import { resolveAgent, resolveProvider, resolveToolServer } from "./resolve-agent.ts";
import { surfacesOn } from "./surfaces.ts";
import { bytes, milliseconds } from "./units.ts";

const EVERYTHING: readonly SurfaceName[] = ["rest", "rpc", "webhooks", "console", "docs", "metrics"];

/** What the file does not say itself: where paths begin, who overrides the address, what the certificates hold. */
export type Surroundings = {
  file: string | null;
  host: string | undefined;
  port: number | undefined;
  /** The certificate of each listener, by its index. */
  tls: readonly (Tls | undefined)[];
  /** Of agents that have theirs in a file, by their names. */
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

/** What a webhook token is called that has no name of its own. */
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

const mapEach = <T, U>(record: Readonly<Record<string, T>>, change: (value: T, key: string) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
