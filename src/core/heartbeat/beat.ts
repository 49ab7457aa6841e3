import type { Agent } from "#core/agents/agents.ts";
import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import type { CoreParts } from "#core/parts.ts";
import { mainSessionOf } from "#core/sessions/sessions.ts";
import type { Runner } from "#core/turns/runner.ts";
import { sleep } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { idLike, newId } from "#kit/ids.ts";
import type { BeatOrder, BeatStep, ClaimRequest } from "#store/store.ts";

/** The most events of one turn, the most bytes of their texts and metadata, and the failed turns after which an event is dead. */
const BATCH = { limit: 100, bytes: 64 * 1024, maxAttempts: 3 };
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** The longest time until the next try after an unexpected error, or until the next beat if a beat left events queued. */
const LEFTOVER_BEAT_MS = 60_000;
const JITTER = 0.1;

export type BeatParts = CoreParts & {
  runner: Runner;
  /** Makes room in a full session. Returns false if that failed, and undefined if another gateway may make room. */
  makeRoom: (sessionId: string) => Promise<boolean | undefined>;
};

/** The next turn of an agent's beat, which this gateway starts. */
export type Starting = {
  readonly agent: string;
  readonly stop: AbortController;
  /** The number of failed tries, and the reason of the last one. */
  tries: number;
  delayedBy: string | undefined;
  /** True once this gateway has compacted the session to make room. */
  hasCompacted: boolean;
};

export function startingOf(agent: string): Starting {
  return { agent, stop: new AbortController(), tries: 0, delayedBy: undefined, hasCompacted: false };
}

/**
 * Starts the next turn of the beat, or ends the beat. If a turn cannot be started now, retries with growing pauses until it is stopped, because an
 * agent without an interval may have no later beat. Returns undefined if `starting` was stopped or the agent was removed.
 */
export async function startNextTurn(parts: BeatParts, starting: Starting): Promise<BeatStep | undefined> {
  const { agents, inBackground } = parts;
  while (!starting.stop.signal.aborted) {
    try {
      return await inBackground(async () => {
        const agent = agents.find(starting.agent);
        return agent && (await startOf(parts, agent));
      });
    } catch (error) {
      await waitToRetry(parts, starting, error);
    }
  }
  return undefined;
}

async function startOf(parts: BeatParts, agent: Agent): Promise<BeatStep> {
  const { store, runner, admit } = parts;
  admit();
  const claim = runner.reserve(agent.name);
  let step: BeatStep | undefined;
  try {
    step = await store.startBeat(orderOf(parts, agent, claim));
  } finally {
    if (claim && !(step && claimedOf(step))) runner.free(agent.name);
  }
  const claimed = claimedOf(step);
  if (claimed) runner.begin(claimed);
  return step;
}

function claimedOf(step: BeatStep) {
  return step.outcome === "started" ? step.started.claimed : undefined;
}

/** Errors with a temporary cause, or a cause that an operator can fix. */
const EXPECTED: ReadonlySet<string> = new Set([
  "session-busy",
  "session-full",
  "session-conflict",
  "gateway-busy",
  "store-full",
  "store-unavailable",
]);

async function waitToRetry(parts: BeatParts, starting: Starting, error: unknown): Promise<void> {
  const { clock, events } = parts;
  const { agent, stop } = starting;
  const reason = GatewayError.from(error).name;
  if (reason === "session-full" && !starting.hasCompacted) {
    const hasRoom = await parts.makeRoom(mainSessionOf(agent));
    starting.hasCompacted = hasRoom !== undefined;
    if (hasRoom) return;
  }
  let delayMs = pauseOf(starting.tries++);
  if (EXPECTED.has(reason)) {
    starting.delayedBy = reason;
    events.beatDelayed({ agent, reason, delayMs });
  } else if (reason !== "shutting-down") {
    events.unexpectedError({ error, where: "heartbeat" });
    delayMs = LEFTOVER_BEAT_MS;
  }
  await sleep(clock, delayMs, stop.signal);
}

function pauseOf(tries: number): number {
  return Math.round(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2));
}

function orderOf(
  { store, clock, settings, countedModels }: BeatParts,
  agent: Agent,
  claim: ClaimRequest | undefined,
): BeatOrder {
  const { name } = agent;
  const { store: limits, recorder } = settings().limits;
  const now = claim?.now ?? clock.now();
  const turnId = newId("turn", now);
  return {
    turn: {
      now,
      turnId,
      messageId: idLike("msg", turnId, now),
      session: { sessionId: mainSessionOf(name), agent: name, channel: "heartbeat", userId: "heartbeat" },
      surface: "heartbeat",
      caller: "heartbeat",
      model: undefined,
      countedModel: countedModels(agent, undefined),
      skillIds: [],
      waited: false,
      limits,
      recorder,
      claim,
    },
    batch: BATCH,
    intervalMs: jittered(agent.heartbeatMs),
    returnedDelayMs: LEFTOVER_BEAT_MS,
    waitingEvents: store.agentCounts(name).waitingEvents,
    streamKeep: GATEWAY_STORED_ENTRIES,
  };
}

/** Adds up to 10 % to an interval, so that the beats of agents and gateways that started together spread out. */
export function jittered(every: number | undefined): number | undefined {
  return every === undefined ? undefined : Math.round(every * (1 + JITTER * Math.random()));
}
