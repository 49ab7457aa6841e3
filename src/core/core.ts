import type { Clock } from "#kit/clock.ts";
import { createSlices } from "#kit/slices.ts";
import type { Events } from "#observe/events.ts";
import type { Store, StoreWatcher } from "#store/store.ts";
import { createAgentViews } from "./agents/agent-views.ts";
import { type Agent, createAgents } from "./agents/agents.ts";
import { createPauses } from "./agents/pauses.ts";
import { createRemovedAgents } from "./agents/removed-agents.ts";
import { announceOf, type Channels, createAnnouncements } from "./announcements.ts";
import { createGatewayStream } from "./gateway-stream.ts";
import { createHealth } from "./health.ts";
import type { Warmth } from "./heartbeat/beat.ts";
import { createHeartbeat } from "./heartbeat/heartbeat.ts";
import { createSystemEvents, type EventLimits } from "./heartbeat/system-events.ts";
import { type ConfiguredKey, createKeys } from "./keys.ts";
import { createMappings, type MappingsSettings } from "./mappings.ts";
import { createDeliveries } from "./recorder/deliveries.ts";
import { createDeliveryFeed } from "./recorder/delivery-feed.ts";
import { createCompactions } from "./sessions/compactions.ts";
import { createJournal } from "./sessions/journal.ts";
import { startSweeps } from "./sessions/sweeps.ts";
import { createSkills, type InvalidSkill } from "./skills/skills.ts";
import { agesOf, type DatedToken, NEAR_END, needingAnother, tellOldTokens } from "./token-ages.ts";
import { createRetryBudget } from "./turns/attempt.ts";
import { createLiveReplies } from "./turns/live-replies.ts";
import { createRunner } from "./turns/runner.ts";
import { createSharedReplies } from "./turns/shared-replies.ts";
import { createTurnSteps } from "./turns/turn-events.ts";
import { createTurns, type Limits } from "./turns/turns.ts";
import { createUsageStats } from "./usage.ts";

/** What the core takes from the configuration; a reload gives it anew. */
export type CoreSettings = {
  agents: readonly Agent[];
  defaultAgent: string | undefined;
  keys: readonly ConfiguredKey[];
  skillDirs: readonly string[];
  mappings: MappingsSettings;
  /** Where announcements can go, and where those go that name no channel. */
  channels: Channels;
  announceTo: string | undefined;
  concurrency: number;
  limits: Limits & EventLimits;
  retentionMs: number;
  webhookRetentionMs: number;
  eventRetentionMs: number;
  /** Tokens past which a session is compacted by itself; 0 is never. */
  compactAt: number;
  /** Since which day each webhook token is in use, where the configuration says so. */
  datedTokens: readonly DatedToken[];
};

const REPLY_WAIT_MS = 90_000;

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
  warmth?: Warmth | undefined;
}) => {
  const { store, clock, events, admit, processHealth = () => [], replyWaitMs = REPLY_WAIT_MS, warmth } = parts;
  let settings = parts.settings;
  const agents = createAgents(settings.agents, settings.defaultAgent);
  const skills = createSkills();
  const mappings = createMappings(settings.mappings);
  const { shared } = store;
  const journal = createJournal({ isShared: shared !== undefined });
  const replies = shared && createSharedReplies({ shared, clock, events });
  const live = replies?.live ?? createLiveReplies();
  const concurrency = () => settings.concurrency;
  const retries = createRetryBudget();
  const runner = createRunner({ store, agents, skills, journal, live, clock, events, retries, concurrency });
  const limits = () => settings.limits;
  const turns = createTurns({ store, agents, skills, journal, runner, clock, limits, admit });
  const inSlice = createSlices(clock);
  const compactions = createCompactions({
    inSlice,
    store,
    agents,
    clock,
    events,
    node: runner.node,
    limits: () => settings.limits.store,
    compactAt: () => settings.compactAt,
  });
  const channels = () => settings.channels;
  const announcements = createAnnouncements({ store, clock, events, node: runner.node, channels });
  const systemEvents = createSystemEvents({ store, agents, clock, events, limits, admit });
  const heartbeat = createHeartbeat({
    ...{ store, agents, turns, journal, clock, events, node: runner.node, inSlice },
    makeRoom: compactions.makeRoom,
    warmth,
  });
  const removedAgents = createRemovedAgents({ store, agents, heartbeat, clock, events });
  const keys = createKeys({ store, clock, events, configured: settings.keys });
  const followTurn = createTurnSteps({ store, journal, live });
  const gatewayStream = createGatewayStream({ store, clock });
  const health = createHealth({
    node: runner.node,
    store,
    agents,
    clock,
    events,
    stream: gatewayStream,
    limits: () => settings.limits.store,
    eventsRefused: systemEvents.refused,
    endingKeys: () => keys.expiring(NEAR_END),
    eventsDelayedBy: heartbeat.delayedBy,
    datedTokens: () => settings.datedTokens,
    channels: announcements.health,
    process: processHealth,
  });

  const own: StoreWatcher = {
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
    announcement: announcements.wake,
    cancel: (turnId) => runner.stop(turnId, "cancelled"),
    beat: heartbeat.expect,
  };
  /** What is different where others write to the store too. */
  const amongOthers = (one: NonNullable<typeof replies>): StoreWatcher => ({
    ...own,
    entries(session, entries, elsewhere) {
      one.watcher.entries(session, entries);
      // A session is compacted by itself where its turn ended.
      if (elsewhere) journal.watcher.entries(session, entries);
      else own.entries(session, entries);
    },
    wants: journal.wants,
    wantsGateway: gatewayStream.isFollowed,
    keysChanged: keys.follow,
    textsAsked: one.watcher.textsAsked,
    textsPut: one.watcher.textsPut,
  });
  const unwatch = store.watch(replies ? amongOthers(replies) : own);

  const readSkills = async ({ skillDirs }: CoreSettings) => {
    const read = await skills.read(skillDirs);
    for (const { dir, reason } of read.invalid) events.skillRefused({ skill: dir, reason });
    return read;
  };
  const loadSkills = async (): Promise<InvalidSkill[]> => {
    const { invalid, take } = await readSkills(settings);
    take();
    return invalid;
  };
  await Promise.all([keys.load(), loadSkills(), heartbeat.reconfigure()]);
  await removedAgents.begin();
  runner.wake();
  announcements.wake();
  // What they hand back is begun with all its skills.
  const stopTelling = tellOldTokens({
    tokens: () => settings.datedTokens,
    keys: () => keys.expiring(NEAR_END),
    clock,
    events,
  });
  const stopSweeps = startSweeps({ store, clock, events, kept: () => settings });

  let wanted = settings;
  /** Answers the agents that left; undefined where another configuration came meanwhile, and is next. */
  const takeOver = async (next: CoreSettings, inForce: () => void): Promise<readonly string[] | undefined> => {
    if (wanted !== next) return undefined;
    const { take } = await readSkills(next);
    if (store.shared) await removedAgents.expect(next.agents.map(({ name }) => name));
    if (wanted !== next) return undefined;
    settings = next;
    take();
    keys.configure(next.keys);
    announcements.reconfigured();
    mappings.replace(next.mappings);
    const gone = agents.replace(next.agents, next.defaultAgent);
    inForce();
    return gone;
  };
  const giveUpGone = async (gone: readonly string[]): Promise<void> => {
    await removedAgents.left(gone);
    await heartbeat.reconfigure();
    runner.wake();
  };
  /** When the latest configuration is in force, and when what it left behind is given up. */
  let taken: Promise<unknown> = Promise.resolve();
  let settled: Promise<unknown> = taken;

  const deliveryFeed = createDeliveryFeed({ store, clock, events });

  return {
    agents,
    skills,
    deliveries: createDeliveries({ store, events, limits: () => settings.limits.recorder }),
    deliveryFeed,
    mappings,
    journal,
    live,
    turns,
    systemEvents,
    keys,
    followTurn,
    gatewayStream,
    health,
    usageStats: createUsageStats({ store, clock }),
    ...createAgentViews({ agents, skills, store }),
    compact: compactions.compact,
    announcements,
    /** How a turn is started whose reply may be announced. */
    announce: (wish: Parameters<typeof announceOf>[1]) => announceOf(settings, wish),
    /** Ends the compactions that wait or run, for a gateway that stops. */
    stopCompactions: compactions.stop,
    beatNow: heartbeat.beatNow,
    setPaused: createPauses({ store, agents, clock, events }),
    /** Begins no beat any more, for a gateway that stops. */
    stopBeats: heartbeat.stop,
    runner,
    store,
    clock,
    events,
    replyWaitMs,
    /**
     * Takes a new configuration over, all of it at once, when its skills are read, and calls `inForce` then; running turns finish on the
     * old one. Of several that overlap, the last one stays. Resolves when what is gone is given up, too.
     */
    async reconfigure(next: CoreSettings, inForce = () => {}): Promise<void> {
      wanted = next;
      const taking = taken.then(() => takeOver(next, inForce));
      taken = taking.catch(() => {});
      const before = settled;
      const settling = taking.then(async (gone) => {
        await before;
        if (gone) await giveUpGone(gone);
      });
      settled = settling.catch(() => {});
      await settling;
    },
    /** Reads the skills again, after the configuration that is being taken over; answers the folders that were left out. */
    reloadSkills(): Promise<InvalidSkill[]> {
      const loaded = taken.then(loadSkills);
      taken = loaded.catch(() => {});
      return loaded;
    },
    /** What still waits in a store that forgets will never run: who waits for it is told. */
    async giveUpQueued(): Promise<void> {
      if (store.durable) return;
      const error = { name: "shutting-down", detail: "the gateway stopped before the turn ended" } as const;
      for (const { name } of agents.list()) {
        await store.failQueuedTurns(name, error, clock.now());
        await heartbeat.giveUp(name, "the gateway stopped before the agent's heartbeat");
      }
    },
    tokenAges: () => agesOf(settings.datedTokens, clock.now()),
    /** How many REST keys need another one soon, and how many have ended without. */
    endingKeys: () => {
      const keysNow = needingAnother(keys.expiring(NEAR_END));
      const ended = keysNow.filter(({ expiresAt }) => expiresAt <= clock.now()).length;
      return { soon: keysNow.length - ended, ended };
    },
    async close(): Promise<void> {
      stopSweeps();
      stopTelling();
      keys.close();
      deliveryFeed.close();
      await removedAgents.close();
      await heartbeat.close();
      compactions.stop();
      await announcements.drain(0);
      health.close();
      unwatch();
      replies?.close();
    },
  };
};

export type Core = Awaited<ReturnType<typeof createCore>>;
