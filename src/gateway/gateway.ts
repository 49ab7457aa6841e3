import type { Backend } from "#backends/backend.ts";
import type { AgentConfig, Config } from "#config/config.ts";
import type { Difference } from "#config/diff.ts";
import type { LoadedConfig } from "#config/load.ts";
import type { ConfigState, ReloadCause } from "#config/watch.ts";
import { createCore } from "#core/core.ts";
import type { McpTools } from "#core/mcp-tools.ts";
import { createReloads, type ReadConfig } from "#core/reload.ts";
import type { paramsFaults } from "#core/skills/params-faults.ts";
import { type Clock, systemClock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { programFlaw } from "#kit/programs/program.ts";
import { createEvents, type Events, type TurnFollower } from "#observe/events.ts";
import type { Logger } from "#observe/logger.ts";
import { createLoopLag } from "#observe/loop-lag.ts";
import { createRegistry, type Metric } from "#observe/metrics.ts";
import { registerProcessMetrics } from "#observe/process-metrics.ts";
import { hidingStore } from "#store/hiding.ts";
import type { Store } from "#store/store.ts";
import type { Listening } from "#wire/http/listen.ts";
import { reachable } from "#wire/pages/served-at.ts";
import type { RpcMethods } from "#wire/rpc/rpc.ts";
import type { SocketTimes } from "#wire/socket/rpc-ws.ts";
import { version } from "../version.ts";
import { type AnsweringFor, createAgentBackends } from "./agent-backends.ts";
import { createDoors } from "./doors.ts";
import { registerGauges } from "./gauges.ts";
import { registerLimitGauges } from "./limit-gauges.ts";
import { missingPackages } from "./packages.ts";
import { createPressure, createProcessHealth } from "./process-health.ts";
import { drain, openListeners, type Running, reportStart, takeOver } from "./running.ts";
import { coreSettingsOf } from "./settings.ts";
import { openStore } from "./stores.ts";
import { tracingSettingsOf } from "./tracing-settings.ts";

/** The parts that this version has; the loader refuses the rest by name. */
export const BUILT = {
  stores: ["memory", "sqlite", "postgres"],
  backends: ["echo", "model", "a2a", "http", "command", "acp"],
  missingPackages,
  programFlaw,
  paramsFaults: async (...args: Parameters<typeof paramsFaults>) =>
    await (await import("#core/skills/params-faults.ts")).paramsFaults(...args),
} as const;

export type GatewayOptions = {
  loaded: LoadedConfig;
  logger: Logger;
  /** Reads the configuration again when a caller asks; without it, or undefined, there is none to read. */
  readConfig?: (...asked: Parameters<ReadConfig>) => ReturnType<ReadConfig> | undefined;
  /** OpenTelemetry's variables are read from it. */
  env?: NodeJS.ProcessEnv;
  /** The state of the configuration since it is watched; without it, the configuration of the start is in force. */
  configState?: () => ConfigState | undefined;
  /** Replacements for tests: a clock, a backend, a failing store, shorter waits, or methods and tools for trying the protocols. */
  clock?: Clock;
  makeBackend?: (name: string, agent: AgentConfig) => Backend;
  wrapStore?: (store: Store) => Store;
  replyWaitMs?: number;
  requestMs?: number;
  socketTimes?: SocketTimes;
  extraMethods?: RpcMethods;
  mcpTools?: McpTools;
};

export type Gateway = AsyncDisposable & {
  readonly urls: readonly string[];
  /** The first URL, with an address that a client on this machine can call: 0.0.0.0 is replaced. */
  readonly localUrl: string;
  /** Resolves when every door is open; throws when the contract cannot be compiled. */
  readonly ready: Promise<void>;
  readonly store: Store;
  readonly events: Events;
  /** Every metric that `/metrics` may show. */
  readonly metrics: readonly Metric[];
  /** A code that signs a browser in to the console, for one use within a minute. `token` is the console's. */
  signInCode(token: string): string;
  /** Aborts when the gateway starts to stop. */
  readonly closing: AbortSignal;
  /** Applies the parts of a new configuration that need no restart, all at once. Resolves when they are in force. */
  reconfigure(
    config: Config,
    difference: Pick<Difference, "changed" | "needsRestart">,
    cause: ReloadCause,
  ): Promise<void>;
  /** Reads the configuration and the skills again, for SIGHUP: the same as `system.reload`. */
  reload(): Promise<void>;
  /** Starts stopped endpoints, and sends waiting messages at once: the configuration was loaded again without a change. */
  retryEndpoints(): void;
  /** Logs a configuration that was refused. The previous configuration stays in force. */
  refuseConfig(problems: unknown, cause: ReloadCause): void;
  /** Stops accepting, lets work finish for `ms`, gives the rest back, closes. */
  drain(cause: string, ms?: number): Promise<void>;
};

const DRAIN_MS = 30_000;

/** Config in, running gateway out: the one place where every room is put together. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { loaded, logger, clock = systemClock } = options;
  const { config } = loaded;
  const tracing = tracingSettingsOf(config, options.env ?? {}, version);
  const began = clock.monotonic();
  const base = await startCore(options, clock);
  const { core, store, events, registry, lag, intake } = base;
  /** Resolves when the latest configuration is in force. */
  let taken: Promise<void> = Promise.resolve();
  const reloads = createReloads(core, async (...asked) => {
    const reload = await (options.readConfig?.(...asked) ?? NOTHING_TO_READ);
    await taken;
    return reload;
  });
  const atStart = { file: loaded.file, values: loaded.values, loadedAt: loaded.loadedAt, lastReload: undefined };
  const doors = createDoors({
    config,
    core,
    reloads,
    clock,
    events,
    registry,
    version,
    lag,
    isShort: intake.isShort,
    isDraining: intake.isDraining,
    configState: () => options.configState?.() ?? atStart,
    uptimeMs: () => clock.monotonic() - began,
    hide: logger.hideIn,
    hideInJson: logger.hideInJson,
    socketTimes: options.socketTimes,
    extraMethods: options.extraMethods,
    mcpTools: options.mcpTools,
  });
  // The modules of tracing are loaded only if tracing is on.
  const traces =
    tracing &&
    (await import("./tracing.ts")).startTracing({
      settings: tracing,
      config: doors.config,
      core,
      events,
      clock,
      version,
      hideInJson: logger.hideInJson,
      follow: (follower) => base.followers.add(follower),
    });
  const running: Running = { ...base, reloads, doors, traces, listeners: [] };
  const { listeners } = running;
  const { requestMs, socketTimes } = options;
  await openListeners(running, config.gateway.listeners, { requestMs, stuckMs: socketTimes?.stuckMs });
  reportStart(running, loaded.warnings, Math.round(clock.monotonic() - began));
  const closing = new AbortController();
  let drained: Promise<void> | undefined;
  const stop = async (cause: string, ms: number): Promise<void> => {
    intake.end();
    closing.abort();
    await drain(running, cause, ms);
  };
  const ready = doors.open();
  // The start blocked the event loop. This is not a sign of load.
  void ready.then(lag.forget, () => {});
  return {
    urls: listeners.map(({ url }) => url),
    localUrl: reachable(listeners[0] as Listening),
    ready,
    store,
    events,
    metrics: registry.list(),
    signInCode: (token) => core.codes.create({ name: "console", kind: "console", token }).code,
    closing: closing.signal,
    reconfigure: (next, difference, cause) => (taken = taken.then(() => takeOver(running, next, difference, cause))),
    reload: async () => void (await reloads.system("signal")),
    retryEndpoints: () => core.outbox.reconfigured(),
    refuseConfig: (problems, cause) => events.configRefused({ cause, problems }),
    drain: (cause, ms = DRAIN_MS) => (drained ??= stop(cause, ms)),
    [Symbol.asyncDispose]: () => (drained ??= stop("close", 0)),
  };
}

/** The parts that do not depend on doors: observation, store, backends and core. */
async function startCore({ loaded, logger, makeBackend, replyWaitMs, ...options }: GatewayOptions, clock: Clock) {
  const { config } = loaded;
  const { wrapStore = (own: Store) => own } = options;
  const registry = createRegistry();
  const followers = new Set<TurnFollower>();
  const events = createEvents({ logger, registry, followers });
  const lag = createLoopLag();
  registerProcessMetrics(registry, { version, lag });
  const hiding = { hide: logger.hideIn, hideInJson: logger.hideInJson };
  const store = hidingStore(wrapStore(await openStore(config.store, { clock, notice: events.storeNoticed })), hiding);
  const intake = createIntake(clock);
  const backends = createAgentBackends({ clock, events });
  const replaced: AnsweringFor | undefined =
    makeBackend && ((name, agent) => ({ backend: makeBackend(name, agent), toolSource: undefined }));
  const first = backends.next();
  const settings = coreSettingsOf(config, replaced ?? first.answering);
  await first.settle();
  const processHealth = createProcessHealth({ isShort: intake.isShort, lag });
  const { admit } = intake;
  const core = await createCore({
    settings,
    store,
    clock,
    events,
    admit,
    processHealth,
    replyWaitMs,
    hide: hiding.hide,
  }).catch(async (error: unknown) => {
    await store[Symbol.asyncDispose]();
    throw error;
  });
  registerGauges(registry, store, core);
  registerLimitGauges(registry, core);
  return { core, store, clock, events, registry, followers, lag, intake, backends, replaced };
}

/** Admits new work, or throws the reason to refuse it. */
function createIntake(clock: Clock) {
  const isShort = createPressure(clock);
  let isDraining = false;
  return {
    isShort,
    isDraining: () => isDraining,
    admit(): void {
      if (isDraining) throw new GatewayError("shutting-down", undefined, { retryAfterMs: 1_000 });
      if (isShort()) throw new GatewayError("gateway-busy", "Memory is low.", { retryAfterMs: 1_000 });
    },
    /** Admits nothing from now on. */
    end(): void {
      isDraining = true;
    },
  };
}

const NOTHING_TO_READ = { reloaded: true, changed: [], needsRestart: [], problems: [] } as const;
