import { setTimeout as sleep } from "node:timers/promises";
import type { Backend } from "#backends/backend.ts";
import type { AgentConfig, Config } from "#config/config.ts";
import type { Difference } from "#config/diff.ts";
import type { LoadedConfig } from "#config/load.ts";
import type { ConfigState, ReloadCause } from "#config/watch.ts";
import { restMsOf } from "#core/agents/agents.ts";
import { type Core, createCore } from "#core/core.ts";
import { createReloads, type ReadConfig } from "#core/reload.ts";
import { type Clock, systemClock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { programFlaw } from "#kit/programs/program.ts";
import { yieldToOthers } from "#kit/yield.ts";
import { createEvents, type Events, type TurnFollower } from "#observe/events.ts";
import type { Logger } from "#observe/logger.ts";
import { createLoopLag } from "#observe/loop-lag.ts";
import { createRegistry, type Metric } from "#observe/metrics.ts";
import { registerProcessMetrics } from "#observe/process-metrics.ts";
import { hidingStore } from "#store/hiding.ts";
import type { Store } from "#store/store.ts";
import { connectionsThatFit } from "#wire/http/connection-limit.ts";
import { type Listening, listen } from "#wire/http/listen.ts";
import { reachable } from "#wire/pages/served-at.ts";
import type { RpcMethods } from "#wire/rpc/rpc.ts";
import type { SocketTimes } from "#wire/socket/rpc-ws.ts";
import { version } from "../version.ts";
import { type AnsweringFor, createAgentBackends } from "./agent-backends.ts";
import { createDoors } from "./doors.ts";
import { missingPackages } from "./packages.ts";
import { createPressure, createProcessHealth } from "./process-health.ts";
import { coreSettingsOf } from "./settings.ts";
import { forgetfulness, openStore } from "./stores.ts";
import { tracingSettingsOf } from "./tracing-settings.ts";

/** The parts that this version has; the loader refuses the rest by name. */
export const BUILT = {
  stores: ["memory", "sqlite", "postgres"],
  backends: ["echo", "model", "a2a", "http", "command", "acp"],
  missingPackages,
  programFlaw,
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
  /** Replacements for tests: a clock, a backend, a failing store, shorter waits, or methods for trying the protocol. */
  clock?: Clock;
  makeBackend?: (name: string, agent: AgentConfig) => Backend;
  wrapStore?: (store: Store) => Store;
  replyWaitMs?: number;
  requestMs?: number;
  socketTimes?: SocketTimes;
  extraMethods?: RpcMethods;
};

export type Gateway = AsyncDisposable & {
  readonly urls: readonly string[];
  /** The first of them, as somebody at this machine reaches it: 0.0.0.0 is no address to call. */
  readonly localUrl: string;
  /** Resolves when every door is open; throws when the contract cannot be compiled. */
  readonly ready: Promise<void>;
  readonly store: Store;
  readonly events: Events;
  /** Every metric that `/metrics` may show. */
  readonly metrics: readonly Metric[];
  /** A code that signs a browser in to the console, for one use within a minute. `token` is the console's. */
  signInCode(token: string): string;
  /** Aborts when the gateway begins to stop. */
  readonly closing: AbortSignal;
  /** Takes a new configuration over: the parts that are hot, all at once. Resolves when it is in force. */
  reconfigure(
    config: Config,
    difference: Pick<Difference, "changed" | "needsRestart">,
    cause: ReloadCause,
  ): Promise<void>;
  /** Tells of a configuration that was not taken; the one before goes on. */
  refuseConfig(problems: unknown, cause: ReloadCause): void;
  /** Stops accepting, lets work finish for `ms`, gives the rest back, closes. */
  drain(cause: string, ms?: number): Promise<void>;
};

const DRAIN_MS = 30_000;
const LAST_ANSWERS_MS = 1_000;
/** A request that was on its way when the gateway began to stop still gets its refusal. */
const LAST_REQUESTS_MS = 1_000;

/** Config in, running gateway out: the one place where every room is put together. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { loaded, logger, clock = systemClock } = options;
  const { config } = loaded;
  const tracing = tracingSettingsOf(config, options.env ?? {}, version);
  const closing = new AbortController();
  const began = clock.monotonic();
  const registry = createRegistry();
  const followers = new Set<TurnFollower>();
  const events = createEvents({ logger, registry, followers });
  const lag = createLoopLag();
  registerProcessMetrics(registry, { version, lag });
  const { wrapStore = (own: Store) => own, requestMs } = options;
  const hiding = { hide: logger.hideIn, hideInJson: logger.hideInJson };
  const store = hidingStore(wrapStore(await openStore(config.store, { clock, notice: events.storeNoticed })), hiding);
  const isShort = createPressure(clock);
  let draining: Promise<void> | undefined;
  const admit = () => {
    if (draining) throw new GatewayError("shutting-down", undefined, { retryAfterMs: 1_000 });
    if (isShort()) throw new GatewayError("gateway-busy", "Memory is short.", { retryAfterMs: 1_000 });
  };
  const backends = createAgentBackends({ clock, events });
  const { makeBackend } = options;
  const played: AnsweringFor | undefined =
    makeBackend && ((name, agent) => ({ backend: makeBackend(name, agent), toolSource: undefined }));
  const first = backends.next();
  const settings = coreSettingsOf(config, played ?? first.answering);
  await first.settle();
  const processHealth = createProcessHealth({ isShort, lag });
  const { replyWaitMs } = options;
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
  let running = config;
  // Nothing of it is loaded where it is off.
  const traces =
    tracing &&
    (await import("./tracing.ts")).startTracing({
      settings: tracing,
      config: () => running,
      core,
      events,
      clock,
      version,
      hideInJson: logger.hideInJson,
      follow: (follower) => followers.add(follower),
    });
  /** Resolves when the latest configuration is in force. */
  let taken: Promise<void> = Promise.resolve();
  const readConfig: ReadConfig = async (agent) => {
    const reload = await (options.readConfig?.(agent) ?? NOTHING_TO_READ);
    await taken;
    return reload;
  };
  const reloads = createReloads(core, readConfig);
  const { file, values, loadedAt } = loaded;
  const atStart = { file, values, loadedAt, lastReload: undefined };
  const doors = createDoors({
    config,
    core,
    reloads,
    clock,
    events,
    registry,
    version,
    isShort,
    lag,
    isDraining: () => draining !== undefined,
    configState: () => options.configState?.() ?? atStart,
    uptimeMs: () => clock.monotonic() - began,
    ...hiding,
    socketTimes: options.socketTimes,
    extraMethods: options.extraMethods,
  });

  const listeners: Listening[] = [];
  const close = async () => {
    await Promise.all(listeners.map((listener) => listener.close()));
    await core.close();
    await traces?.close();
    await backends.close();
    await store[Symbol.asyncDispose]();
    lag[Symbol.dispose]();
  };
  try {
    for (const [index, { host, port, tls }] of config.gateway.listeners.entries()) {
      const newRequestId = () => newId("req", clock.now());
      const maxConnections = connectionsThatFit(config.gateway.listeners.length);
      listeners.push(
        await listen({
          host,
          port,
          tls,
          maxConnections,
          requestMs,
          stuckMs: options.socketTimes?.stuckMs,
          admits: doors.admits,
          resets: doors.resets,
          ...doors.front(index),
          newRequestId,
          events,
          clock,
        }),
      );
    }
  } catch (error) {
    await close();
    throw error;
  }
  doors.setListening(listeners);
  for (const [index, { url }] of listeners.entries()) {
    events.listening({ address: url, surfaces: doors.surfaces(index), ms: Math.round(clock.monotonic() - began) });
  }
  for (const { surface, reason } of doors.closed()) events.surfaceOff({ surface, reason });
  const forgets = forgetfulness(store);
  for (const detail of forgets ? [...loaded.warnings, forgets] : loaded.warnings)
    events.configWarned({ about: "start", detail });

  const drain = async (cause: string, ms: number): Promise<void> => {
    const from = clock.monotonic();
    closing.abort();
    events.draining({ signal: cause, running: core.runner.running(), queued: store.stats().turnsQueued });
    doors.underWay.closeAfterwards();
    const allGone = Promise.all(listeners.map((listener) => listener.stopAccepting()));
    const lastRequests = Promise.race([allGone, sleep(Math.min(ms, LAST_REQUESTS_MS))]);
    core.compactions[Symbol.dispose]();
    core.heartbeat.stop();
    const [handedBack] = await Promise.all([core.runner.drain(ms), lastRequests]);
    // Turns that have just ended are announced, too.
    const announced = core.announcements.drain(
      Math.max(ms - (clock.monotonic() - from), Math.min(ms, LAST_ANSWERS_MS)),
    );
    await core.giveUpQueued();
    // A follower of one of these hears of its end before its stream is ended.
    await yieldToOthers();
    doors.underWay.endWaits();
    await Promise.all([doors.underWay.answered(LAST_ANSWERS_MS), doors.closeSockets(Math.min(ms, LAST_ANSWERS_MS))]);
    await announced;
    await close();
    events.drained({ ms: Math.round(clock.monotonic() - from), handedBack });
  };

  const takeOver: Gateway["reconfigure"] = async (next, { changed, needsRestart }, cause) => {
    const generation = backends.next();
    try {
      await core.reconfigure(coreSettingsOf(next, played ?? generation.answering), () => {
        running = next;
        doors.reconfigure(next);
        for (const [index, { tls }] of next.gateway.listeners.entries()) if (tls) listeners[index]?.setTls(tls);
      });
    } catch (error) {
      void generation.giveUp();
      events.unexpectedError({ error, where: "reconfigure" });
      return;
    }
    void generation.settle();
    events.configReloaded({ cause, changed, needRestart: needsRestart });
    if (cause !== "rpc") void reloads.told({ changed, needsRestart });
  };

  const ready = doors.open();
  // The start needed all of the event loop: that keeps nobody from coming.
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
    reconfigure: (next, difference, cause) => (taken = taken.then(() => takeOver(next, difference, cause))),
    refuseConfig: (problems, cause) => events.configRefused({ cause, problems }),
    drain: (cause, ms = DRAIN_MS) => (draining ??= drain(cause, ms)),
    [Symbol.asyncDispose]: () => (draining ??= drain("close", 0)),
  };
}

const NOTHING_TO_READ = { reloaded: true, changed: [], needsRestart: [], problems: [] } as const;

function registerGauges(
  registry: ReturnType<typeof createRegistry>,
  store: Store,
  { agents, tokenAges, endingKeys }: Core,
): void {
  const gauge = (name: string, help: string, read: () => number) =>
    registry.read("gauge", `gateway_${name}`, help, read);
  gauge("sessions", "Sessions in the store.", () => store.stats().sessions);
  gauge("turns_queued", "Queued turns.", () => store.stats().turnsQueued);
  gauge("turns_running", "Running turns.", () => store.stats().turnsRunning);
  gauge("store_bytes", "Size of the stored data, as counted for limits.storeBytes.", () => store.stats().bytes);
  gauge("announcements_waiting", "Replies that wait for delivery to a channel.", () => store.stats().announcements);
  gauge("events_queued", "System events that wait or are in a running turn.", () => store.stats().eventsQueued);
  gauge("events_dead", "Dead system events that are still stored.", () => store.stats().eventsDead);
  gauge("deliveries", "Deliveries in the flight recorder.", () => store.stats().deliveries);
  registry.read(
    "gauge",
    "gateway_agent_rest_seconds",
    "Remaining time in which a failing backend gets no requests; otherwise 0.",
    () => agents.list().map((agent) => ({ labels: { agent: agent.name }, value: restMsOf(agent) / 1_000 })),
  );
  registry.read("gauge", "gateway_agent_paused", "1 while the agent is paused, otherwise 0.", () =>
    agents.list().map(({ name }) => ({
      labels: { agent: name },
      value: store.agentCounts(name).pausedAt === undefined ? 0 : 1,
    })),
  );
  registry.read("gauge", "gateway_webhook_token_age_days", "Age of a webhook token, in days.", () =>
    tokenAges().map(({ index, name, days }) => ({ labels: { index: String(index), name }, value: days })),
  );
  registry.read(
    "gauge",
    "gateway_rest_keys_ending",
    "REST keys that expire within 14 days, or expired within the last 7.",
    () => {
      const { soon, ended } = endingKeys();
      return [
        { labels: { state: "soon" }, value: soon },
        { labels: { state: "ended" }, value: ended },
      ];
    },
  );
}
