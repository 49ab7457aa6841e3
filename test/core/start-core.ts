import type { Backend } from "#backends/backend.ts";
import type { Agent } from "#core/agents/agents.ts";
import { createCore } from "#core/core.ts";
import { createMappings } from "#core/mappings.ts";
import type { CoreSettings } from "#core/settings.ts";
import type { FollowTurn, StepMark, TurnStep } from "#core/turns/turn-events.ts";
import type { TurnRequest } from "#core/turns/turns.ts";
import { createEvents } from "#observe/events.ts";
import { createLogger } from "#observe/logger.ts";
import { createRegistry } from "#observe/metrics.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import { NO_POLICY } from "#store/policy.ts";
import type { Store, Turn } from "#store/store.ts";
import { createScriptedBackend } from "#test/backends/scripted.ts";
import { createManualClock, type ManualClock } from "#test/harness/clock.ts";

export type WrapStore = (store: Store) => Partial<Store>;

export type CoreOptions = {
  agents?: readonly (Partial<Agent> & { name: string })[];
  backend?: Backend;
  settings?: Partial<CoreSettings>;
  /** Methods that replace the store's, for a slow or failing engine. */
  wrapStore?: WrapStore;
  admit?: () => void;
  processHealth?: Parameters<typeof createCore>[0]["processHealth"];
  clock?: ManualClock;
};

export const AMPLE: CoreSettings["limits"] = {
  store: { turnsPerSession: 1e6, turns: 1e6, events: 1e6, messagesPerSession: 1e6, storeBytes: 1e12, share: 1 },
  recorder: { entries: 1_000, bytes: 1e9, refused: 1_000 },
  usageModels: 100,
};

/** The core on a memory store, with a clock and a backend that a test controls. */
export async function startCore(options: CoreOptions = {}) {
  const clock = options.clock ?? createManualClock();
  const scripted = createScriptedBackend();
  const backend = options.backend ?? scripted.backend;
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: "debug",
    write: (text) => {
      for (const line of text.trim().split("\n")) lines.push(JSON.parse(line) as Record<string, unknown>);
    },
  });
  const settingsWith = (agents: CoreOptions["agents"] = [{ name: "main" }]): CoreSettings => ({
    agents: new Map(agents.map((agent) => [agent.name, { ...agentWith(backend), ...agent }])),
    defaultAgent: agents[0]?.name,
    keys: [],
    skillDirs: [],
    mappings: createMappings({ mappings: [], path: "/hooks", longestMessage: 1024 ** 2, recordBodies: true }),
    concurrency: 4_096,
    limits: AMPLE,
    channels: new Map(),
    announceTo: undefined,
    notify: new Map(),
    schedules: new Map(),
    policy: NO_POLICY,
    retentionMs: 1e15,
    webhookRetentionMs: 1e15,
    eventRetentionMs: 1e15,
    compactAt: 0,
    recordBodies: true,
    isToolContentStored: true,
    datedTokens: [],
    ...options.settings,
  });
  const registry = createRegistry();
  const memory = createMemoryStore({ clock });
  const store: Store = { ...memory, ...options.wrapStore?.(memory) };
  const core = await createCore({
    settings: settingsWith(options.agents),
    store,
    clock,
    events: createEvents({ logger, registry }),
    admit: options.admit ?? (() => {}),
    processHealth: options.processHealth,
  });
  await clock.settle();

  const start = (options: Partial<TurnRequest> & { session?: string; agent?: string } = {}) => {
    const { session = "chat:a", agent = "main", ...rest } = options;
    const place = { sessionId: session, agent, channel: "rest", userId: "ada" };
    return core.turns.start({ place, surface: "rest", caller: "ci", text: "hello", ...rest });
  };

  /** Waits until the turn has ended; returns the stored turn. */
  const ended = async ({ turnId }: { turnId: string }): Promise<Turn> => {
    await core.turns.wait(await core.turns.get(turnId), 1e9);
    return await core.turns.get(turnId);
  };

  return {
    ...core,
    core,
    store,
    clock,
    scripted,
    settingsWith,
    /** Starts a turn, by default without a waiting caller. */
    start: async (options?: Parameters<typeof start>[0]): Promise<Turn> => (await start(options)).turn,
    startFully: start,
    ended,
    /** The log so far, as records. */
    async logged(event?: string): Promise<Record<string, unknown>[]> {
      await logger.flush();
      return event === undefined ? lines : lines.filter((line) => line.event === event);
    },
    /** The current metrics. */
    figures: registry.text,
    /** Follows a turn from a position, in the background. */
    follow: (turn: Turn, from?: StepMark) => followInBackground(core.followTurn, turn, from),
    [Symbol.asyncDispose]: async () => {
      await core.close();
      await store[Symbol.asyncDispose]();
    },
  };
}

export type TestCore = Awaited<ReturnType<typeof startCore>>;

/** The default settings of a test's agent. */
export function agentWith(backend: Backend): Omit<Agent, "name"> {
  return {
    description: "",
    instructions: undefined,
    model: undefined,
    skills: ["*"],
    concurrency: 256,
    deadlineMs: 600_000,
    heartbeatMs: 1_800_000,
    firstByteMs: 86_400_000,
    silenceMs: 86_400_000,
    backend,
    toolSource: undefined,
  };
}

function followInBackground(
  follow: FollowTurn,
  turn: Turn,
  from: StepMark | undefined,
): {
  steps: TurnStep[];
  done: Promise<TurnStep[]>;
  stop: () => void;
  until: (is: (step: TurnStep) => boolean) => Promise<void>;
} {
  const followed = follow(turn, from, (step) => [step]);
  const steps: TurnStep[] = [];
  let look = () => {};
  const run = async () => {
    for await (const step of followed) {
      steps.push(step);
      look();
    }
    return steps;
  };
  const done = run();
  const until = (is: (step: TurnStep) => boolean) =>
    new Promise<void>((resolve, reject) => {
      look = () => steps.some(is) && resolve();
      look();
      done.then(() => reject(new Error("the stream ended first")), reject);
    });
  return { steps, done, stop: () => void followed.return(), until };
}

/** The joined pieces of a stream, and each step in one word. */
export function textOf(steps: readonly TurnStep[]): string {
  return steps.map((step) => (step.kind === "delta" ? step.text : "")).join("");
}
export function namesOf(steps: readonly TurnStep[]): string[] {
  return steps.map((step) => (step.kind === "delta" ? `+${step.text}` : step.entry.name));
}

/** The same, with adjacent pieces joined: the cuts of a reply depend on the time of a read. */
export function joinedNamesOf(steps: readonly TurnStep[]): string[] {
  const names: string[] = [];
  for (const name of namesOf(steps)) {
    if (name.startsWith("+") && names.at(-1)?.startsWith("+")) names.push(names.pop() + name.slice(1));
    else names.push(name);
  }
  return names;
}

/** The entries of a completed turn in its stream. */
export const ENTRIES = ["turn.queued", "turn.started", "message.created", "message.completed", "turn.completed"];
export function entriesOf(steps: readonly TurnStep[]): string[] {
  return namesOf(steps).filter((name) => !name.startsWith("+"));
}
export function isSaid(text: string) {
  return (step: TurnStep): boolean => step.kind === "delta" && step.text === text;
}
