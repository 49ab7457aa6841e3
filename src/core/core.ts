import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import { createAgentViews } from "./agent-views.ts";
import { type Agent, createAgents } from "./agents.ts";
import { MAX_ATTEMPTS } from "./attempt.ts";
import type { Clock } from "./clock.ts";
import { createCompactions } from "./compactions.ts";
import { createGatewayStream, GATEWAY_KEPT_MS } from "./gateway-stream.ts";
import { createHealth } from "./health.ts";
import { createJournal } from "./journal.ts";
import { type ConfiguredKey, createKeys } from "./keys.ts";
import { createLiveReplies } from "./live-replies.ts";
import { createRunner } from "./runner.ts";
import { createSkills, type InvalidSkill } from "./skills.ts";
import { createTurnSteps } from "./turn-events.ts";
import { createTurns, type Limits } from "./turns.ts";
import { createUsageStats, USAGE_KEPT_MS } from "./usage.ts";

/** What the core takes from the configuration; a reload gives it anew. */
export type CoreSettings = {
  agents: readonly Agent[];
  defaultAgent: string | undefined;
  keys: readonly ConfiguredKey[];
  skillDirs: readonly string[];
  concurrency: number;
  limits: Limits;
  retentionMs: number;
  webhookRetentionMs: number;
  /** Tokens past which a session is compacted by itself; 0 is never. */
  compactAt: number;
  /** Since which day each webhook token is in use, where the configuration says so. */
  tokensSince: readonly string[];
};

const REPLY_WAIT_MS = 90_000;
const SWEEP_EVERY_MS = 1_000;

/** What the gateway knows, over one store. */
export const createCore = async (parts: {
  settings: CoreSettings;
  store: Store;
  clock: Clock;
  events: Events;
  admit: () => void;
  /** What is to be told of the process: memory, the event loop. */
  processHealth?: Parameters<typeof createHealth>[0]["process"];
  /** How long a call waits for its turn before it is told where to find it. */
  replyWaitMs?: number;
}) => {
  const { store, clock, events, admit, processHealth = () => [], replyWaitMs = REPLY_WAIT_MS } = parts;
  let settings = parts.settings;
  const agents = createAgents(settings.agents, settings.defaultAgent);
  const skills = createSkills();
  const journal = createJournal();
  const live = createLiveReplies();
  const concurrency = () => settings.concurrency;
  const runner = createRunner({ store, agents, skills, journal, live, clock, events, concurrency });
  const limits = () => settings.limits;
  const turns = createTurns({ store, agents, skills, journal, runner, clock, limits, admit });
  const compactions = createCompactions({
    store,
    agents,
    clock,
    events,
    node: runner.node,
    limits: () => settings.limits.store,
    compactAt: () => settings.compactAt,
  });
  const keys = createKeys({ store, clock, configured: settings.keys });
  const followTurn = createTurnSteps({ store, journal, live });
  const gatewayStream = createGatewayStream({ store, clock });
  const health = createHealth({
    store,
    agents,
    clock,
    events,
    stream: gatewayStream,
    limits: () => settings.limits.store,
    tokensSince: () => settings.tokensSince,
    process: processHealth,
  });

  const unwatch = store.watch({
    entries(session, entries) {
      journal.watcher.entries(session, entries);
      compactions.watcher.entries(session, entries);
    },
    sessionDeleted(session, end) {
      journal.watcher.sessionDeleted(session, end);
      compactions.watcher.sessionDeleted(session);
    },
    compaction: compactions.watcher.compaction,
    gatewayEntries: gatewayStream.hear,
    work: runner.wake,
    cancel: (turnId) => runner.stop(turnId, "cancelled"),
  });

  let isClosed = false;
  const sweepAfter = (ms: number) => {
    if (!isClosed) stopSweep = clock.after(ms, runSweep);
  };
  const sweep = async (): Promise<void> => {
    const now = clock.now();
    const more = await store.sweep({
      now,
      maxAttempts: MAX_ATTEMPTS,
      lost: { name: "turn-failed", detail: "its runner was lost, as often as a turn is tried" },
      sessionsBefore: now - settings.retentionMs,
      webhookSessionsBefore: now - settings.webhookRetentionMs,
      usageBefore: now - USAGE_KEPT_MS,
      gatewayBefore: now - GATEWAY_KEPT_MS,
    });
    sweepAfter(more ? 10 : SWEEP_EVERY_MS);
  };
  const runSweep = () => {
    sweep().catch((error: unknown) => {
      if (!isClosed) events.storeFailed({ operation: "sweep", error });
      sweepAfter(SWEEP_EVERY_MS);
    });
  };
  let stopSweep = () => {};
  sweepAfter(SWEEP_EVERY_MS);

  const loadSkills = async (): Promise<InvalidSkill[]> => {
    const invalid = await skills.load(settings.skillDirs);
    for (const { dir, reason } of invalid) events.skillRefused({ skill: dir, reason });
    return invalid;
  };
  await Promise.all([keys.load(), loadSkills()]);
  runner.wake();

  const replaceAgents = async (next: CoreSettings): Promise<void> => {
    // Another came meanwhile, and is next.
    if (settings !== next) return;
    await loadSkills();
    for (const gone of agents.replace(next.agents, next.defaultAgent)) {
      const error = { name: "agent-removed", detail: `the agent ${gone} left the configuration` } as const;
      await store.failQueuedTurns(gone, error, clock.now());
    }
    runner.wake();
  };
  let replaced = Promise.resolve();

  return {
    agents,
    skills,
    journal,
    live,
    turns,
    keys,
    followTurn,
    gatewayStream,
    health,
    usageStats: createUsageStats({ store, clock }),
    ...createAgentViews({ agents, skills, store }),
    compact: compactions.compact,
    /** Ends the compactions that wait or run, for a gateway that stops. */
    stopCompactions: compactions.stop,
    runner,
    store,
    clock,
    events,
    replyWaitMs,
    /** Takes a new configuration; running turns finish on the old one. Of several that overlap, the last one stays. */
    reconfigure(next: CoreSettings): Promise<void> {
      settings = next;
      keys.configure(next.keys);
      replaced = replaced.catch(() => {}).then(() => replaceAgents(next));
      return replaced;
    },
    /** Reads the skills again, after the configuration that is being taken over; answers the folders that were left out. */
    reloadSkills(): Promise<InvalidSkill[]> {
      const loaded = replaced.catch(() => {}).then(loadSkills);
      replaced = loaded.then(() => {});
      return loaded;
    },
    /** What still waits in a store that forgets will never run: who waits for it is told. */
    async giveUpQueued(): Promise<void> {
      if (store.durable) return;
      const error = { name: "shutting-down", detail: "the gateway stopped before the turn ended" } as const;
      for (const { name } of agents.list()) await store.failQueuedTurns(name, error, clock.now());
    },
    async close(): Promise<void> {
      isClosed = true;
      stopSweep();
      compactions.stop();
      health.close();
      unwatch();
    },
  };
};

export type Core = Awaited<ReturnType<typeof createCore>>;
