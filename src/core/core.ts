import { createBackground } from "#kit/background.ts";
import type { Clock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import { createAgents } from "./agents/agents.ts";
import { createCountedModels } from "./agents/counted-models.ts";
import { createRemovedAgents } from "./agents/removed-agents.ts";
import { createBudgets } from "./budgets.ts";
import { createCodes } from "./codes.ts";
import { GatewayStream } from "./gateway-stream.ts";
import { createHealth } from "./health.ts";
import { Heartbeat } from "./heartbeat/heartbeat.ts";
import { createSystemEvents } from "./heartbeat/system-events.ts";
import { withKeyBudgets } from "./key-budgets.ts";
import { startKeyNotices } from "./key-notices.ts";
import { Keys } from "./keys.ts";
import { createOutbox } from "./outbox/outbox.ts";
import type { CoreParts } from "./parts.ts";
import { createDeliveries } from "./recorder/deliveries.ts";
import { DeliveryFeed } from "./recorder/delivery-feed.ts";
import { Schedules } from "./schedules/schedules.ts";
import { Compactions } from "./sessions/compactions.ts";
import { createSessionStreams } from "./sessions/session-streams.ts";
import { createNameCheck } from "./sessions/sessions.ts";
import { createStoredSessions } from "./sessions/stored-sessions.ts";
import { startSweeps } from "./sessions/sweeps.ts";
import type { CoreSettings } from "./settings.ts";
import { createSkills, type InvalidSkill, type Skills } from "./skills/skills.ts";
import { agesOf, countEndingKeys, reportOldTokens } from "./token-ages.ts";
import { createLiveReplies, createSharedReplies } from "./turns/live-replies.ts";
import { createRetryBudget } from "./turns/retry-budget.ts";
import { Runner } from "./turns/runner.ts";
import { createTurnSteps } from "./turns/turn-events.ts";
import { createTurns } from "./turns/turns.ts";
import { createTurnsPerMinute } from "./turns/turns-per-minute.ts";
import { createUsageStats } from "./usage.ts";
import { createWebhookTurns } from "./webhook-turns.ts";

const REPLY_WAIT_MS = 90_000;

type CoreOptions = {
  settings: CoreSettings;
  store: Store;
  clock: Clock;
  events: Events;
  admit: () => void;
  /** A text without the secrets of the configuration. */
  hide?: (text: string) => string;
  /** The health of the process: memory, the event loop. */
  processHealth?: Parameters<typeof createHealth>[0]["process"];
  /** The longest time that a call waits for its turn. */
  replyWaitMs?: number;
};

/** The gateway's agents, sessions, turns and other state, over one store. */
export async function createCore(options: CoreOptions) {
  const { store, clock, events } = options;
  let current = options.settings;
  const settings = () => current;
  const nouns = createNouns(options, settings);
  const { deliveryFeed, heartbeat, keys, outbox, removedAgents, runner, schedules } = nouns;
  let changed: Promise<unknown> = Promise.resolve();
  /** Changes of settings and skills run one after the other. */
  const inTurn = <T>(change: () => Promise<T>): Promise<T> => {
    const done = changed.then(change);
    changed = done.catch(() => {});
    return done;
  };
  const reloadSkills = (): Promise<InvalidSkill[]> =>
    inTurn(async () => {
      const { invalid, take } = await readSkills(nouns, current);
      take();
      return invalid;
    });
  await store.configure(current.policy);
  // Calls of the store run in their order: a key is used only after its budget is set.
  keys.onChange(() => void store.configure(withKeyBudgets(current.policy, keys.unexpired())));
  const unwatch = watchStore(store, nouns);
  await Promise.all([keys.load(), reloadSkills(), heartbeat.reconfigure()]);
  await removedAgents.begin();
  // Stored work starts after all skills are read.
  runner.wake();
  outbox.wake();
  await schedules.reconfigure();
  const stopTelling = reportOldTokens({ tokens: () => current.datedTokens, keys: () => keys.ending(), clock, events });
  const stopNotices = startKeyNotices({
    store,
    clock,
    events,
    keys: () => keys.ending(),
    policy: () => current.policy,
  });
  const stopSweeps = startSweeps({ store, clock, events, settings });

  return {
    ...nouns,
    checkNames: createNameCheck(nouns.hide),
    replyWaitMs: options.replyWaitMs ?? REPLY_WAIT_MS,
    /**
     * Applies a new configuration as a whole once its skills are read, and calls `inForce` then. Running turns finish with the old one. Concurrent
     * calls run one after the other. Resolves when the work of removed agents has failed, too, with true if the skills are different.
     */
    async reconfigure(next: CoreSettings, inForce = () => {}): Promise<boolean> {
      const hasOtherSkills = await inTurn(async () => {
        const { take } = await readSkills(nouns, next);
        if (store.shared) await removedAgents.expect([...next.agents.keys()]);
        await store.configure(withKeyBudgets(next.policy, keys.unexpired()));
        current = next;
        const isDifferent = take();
        keys.configure(next.keys);
        outbox.reconfigured();
        inForce();
        return isDifferent;
      });
      await removedAgents.left();
      await Promise.all([heartbeat.reconfigure(), schedules.reconfigure()]);
      runner.wake();
      return hasOtherSkills;
    },
    /** Reads the skills again, after a configuration that is being applied. Returns the folders without a valid skill. */
    reloadSkills,
    failQueued: () => failQueued(nouns),
    tokenAges: () => agesOf(current.datedTokens, clock.now()),
    endingKeys: () => countEndingKeys(keys.ending(), clock.now()),
    async close(): Promise<void> {
      stopSweeps();
      stopTelling();
      stopNotices();
      keys[Symbol.dispose]();
      deliveryFeed.close();
      await removedAgents.close();
      await Promise.all([heartbeat[Symbol.asyncDispose](), schedules[Symbol.asyncDispose]()]);
      nouns.compactions[Symbol.dispose]();
      await outbox.drain(0);
      nouns.health.close();
      unwatch();
      nouns.sharedReplies?.close();
    },
  };
}

export type Core = Awaited<ReturnType<typeof createCore>>;

type Nouns = ReturnType<typeof createNouns>;

/** The parts of the core, each with the parts that it needs. */
function createNouns(
  { store, clock, events, admit, hide = (text) => text, processHealth = () => [] }: CoreOptions,
  settings: () => CoreSettings,
) {
  const { shared } = store;
  const sharedReplies = shared && createSharedReplies({ shared, clock, events });
  const live = sharedReplies?.live ?? createLiveReplies();
  const common: CoreParts = {
    store,
    clock,
    events,
    admit,
    settings,
    node: newId("node", clock.now()),
    agents: createAgents(settings),
    countedModels: createCountedModels({ store, clock, events, settings }),
    skills: createSkills(),
    live,
    streams: createSessionStreams({ store, live }),
    inBackground: createBackground(),
    hide,
  };
  const turnsPerMinute = createTurnsPerMinute(clock);
  const runner = new Runner({ ...common, retries: createRetryBudget(), turnsPerMinute });
  const turns = createTurns({ ...common, runner });
  const compactions = new Compactions(common);
  const outbox = createOutbox(common);
  const systemEvents = createSystemEvents(common);
  const heartbeat = new Heartbeat({ ...common, runner, makeRoom: (sessionId) => compactions.makeRoom(sessionId) });
  const keys = new Keys({
    store,
    clock,
    events,
    configured: settings().keys,
    agents: () => [...settings().agents.keys()],
  });
  const gatewayStream = new GatewayStream(common);
  const process = processHealth;
  const health = createHealth({ ...common, gatewayStream, systemEvents, heartbeat, keys, outbox, process });
  return {
    ...common,
    sharedReplies,
    runner,
    turns,
    turnsPerMinute,
    compactions,
    outbox,
    systemEvents,
    heartbeat,
    schedules: new Schedules({ ...common, runner, turns }),
    keys,
    gatewayStream,
    health,
    removedAgents: createRemovedAgents({ ...common, systemEvents }),
    budgets: createBudgets(common),
    codes: createCodes(common),
    deliveries: createDeliveries(common),
    deliveryFeed: new DeliveryFeed(common),
    followTurn: createTurnSteps(common),
    sessions: createStoredSessions(common),
    webhookTurns: createWebhookTurns({ ...common, turns }),
    usageStats: createUsageStats(common),
  };
}

/** Subscribes the parts of the core to the store. Returns a function that ends this. */
function watchStore(store: Store, nouns: Nouns): () => void {
  const { streams, compactions, gatewayStream, runner, outbox, heartbeat, schedules, keys } = nouns;
  const { sharedReplies, deliveryFeed } = nouns;
  const worker = {
    turn: (dueInMs?: number) => runner.wakeIn(dueInMs),
    beat: (dueInMs?: number) => heartbeat.expect(dueInMs),
    outgoing: () => outbox.wake(),
    schedule: () => schedules.wake(),
  };
  return store.watch({
    ...sharedReplies?.watcher,
    entries(session, entries, elsewhere) {
      sharedReplies?.watcher.entries(session, entries);
      streams.watcher.entries(session, entries);
      // The gateway on which a turn ended compacts its session.
      if (!elsewhere) compactions.watcher.entries(session, entries);
    },
    sessionDeleted(session, end) {
      streams.watcher.sessionDeleted(session, end);
      compactions.watcher.sessionDeleted(session);
    },
    compacted: compactions.watcher.compacted,
    gatewayEntries: (entries) => gatewayStream.publish(entries),
    work: (kind, dueInMs) => worker[kind](dueInMs),
    cancel: (turnId) => runner.stop(turnId, "cancelled"),
    delivery: (deliveryId, change) => deliveryFeed.add(deliveryId, change),
    deliveriesLost: () => deliveryFeed.lose(),
    wants: streams.wants,
    wantsGateway: () => gatewayStream.isFollowed,
    keysChanged: () => keys.follow(),
  });
}

async function readSkills({ skills, events }: Nouns, { skillDirs }: CoreSettings): ReturnType<Skills["read"]> {
  const found = await skills.read(skillDirs);
  for (const { dir, reason } of found.invalid) events.skillRefused({ skill: dir, reason });
  return found;
}

/** Fails the work that waits in a store in memory, because it will never run. Its callers get the error. */
async function failQueued({ store, clock, systemEvents }: Nouns): Promise<void> {
  if (store.durable) return;
  const error = { name: "shutting-down", detail: "the gateway stopped before the turn ended" } as const;
  for (const name of await store.openAgents()) {
    await store.failQueuedTurns(name, error, clock.now());
    await systemEvents.giveUp(name, "the gateway stopped before the agent's heartbeat");
  }
}
