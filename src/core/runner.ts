import type { Events } from "#observe/events.ts";
import type { Claim, ClaimedTurn, Store, TurnEnd, TurnError, UsageRow } from "#store/store.ts";
import type { Agent, Agents } from "./agents.ts";
import type { Clock } from "./clock.ts";
import { readHistory } from "./history.ts";
import { newId } from "./ids.ts";
import type { Journal } from "./journal.ts";
import type { LiveReplies } from "./live-replies.ts";
import { type Outcome, runTurn, type StopReason } from "./run-turn.ts";
import type { Skills } from "./skills.ts";

export const MAX_ATTEMPTS = 3;
const LEASE_MS = 30_000;
const TICK_MS = 250;
const FIRST_BACKOFF_MS = 500;
const COMMIT_TRIES = 5;
/** How long a stop waits for a run that is about to begin; it may be meant for another node. */
const EARLY_STOP_MS = 5_000;

type Run = { claimed: ClaimedTurn; agent: Agent; controller: AbortController; since: number };

export type RunnerParts = {
  store: Store;
  agents: Agents;
  skills: Skills;
  journal: Journal;
  live: LiveReplies;
  clock: Clock;
  events: Events;
  concurrency: () => number;
};

/**
 * Claims turns and runs them: one at a time in a session (the store sees to that), at most `concurrency` in all and as many of an
 * agent as the agent says. A full agent makes only its own turns wait.
 */
export const createRunner = (parts: RunnerParts) => {
  const { store, agents, clock, events, concurrency } = parts;
  const node = newId("node", clock.now());
  const runs = new Map<string, Run>();
  const runningOf = new Map<string, number>();
  /** Stops that came between a turn's claim and its run. */
  const early = new Map<string, StopReason>();
  /** Agents that had no place when turns were claimed: some of theirs may be ready, and nobody will tell of them again. */
  const full = new Set<string>();
  let state: "running" | "draining" | "stopped" = "running";
  let taken = 0;
  let wanted = false;
  let pumping = false;
  /** Places are promised to a claim that is under way: none is left to reserve. */
  let claiming = false;
  let stopTick: (() => void) | undefined;
  let stopDue: (() => void) | undefined;
  let whenIdle: (() => void) | undefined;
  let lastExtended = clock.monotonic();

  const freeOf = (name: string): number => {
    const agent = agents.find(name);
    return agent ? agent.concurrency - (runningOf.get(name) ?? 0) : 0;
  };
  const askFree = (name: string): number => {
    const free = freeOf(name);
    if (free < 1) full.add(name);
    return free;
  };
  const mayClaim = () => state === "running" || (state === "draining" && !store.durable);
  const hold = (name: string, by: 1 | -1) => {
    taken += by;
    runningOf.set(name, (runningOf.get(name) ?? 0) + by);
  };
  const letGo = (name: string) => {
    hold(name, -1);
    if (full.delete(name) || wanted) wake();
    if (taken === 0) whenIdle?.();
  };

  const wake = () => {
    wanted = true;
    if (pumping) return;
    pumping = true;
    queueMicrotask(pump);
  };

  const pump = async (): Promise<void> => {
    try {
      while (wanted && mayClaim() && taken < concurrency()) {
        wanted = false;
        claiming = true;
        const request = { now: clock.now(), node, leaseMs: LEASE_MS, free: concurrency() - taken, freeOf: askFree };
        const { turns, nextDueInMs } = await store.claimTurns({
          ...request,
          newMessageId: () => newId("msg", clock.now()),
        });
        claiming = false;
        for (const claimed of turns) begin(claimed, false);
        if (turns.length > 0) wanted = true;
        stopDue?.();
        stopDue = nextDueInMs === undefined ? undefined : clock.after(nextDueInMs, wake);
      }
    } catch (error) {
      events.storeFailed({ operation: "claimTurns", error });
      clock.after(1_000, wake);
    } finally {
      claiming = false;
      pumping = false;
    }
  };

  /** Runs a claimed turn. `held`: its place was taken before the claim. */
  const begin = (claimed: ClaimedTurn, held: boolean): void => {
    const { turn } = claimed;
    if (!held) hold(turn.agent, 1);
    const agent = agents.find(turn.agent);
    const run: Run = { claimed, agent: agent as Agent, controller: new AbortController(), since: clock.monotonic() };
    // Its lease ended while it ran here: that attempt has lost its turn.
    runs.get(turn.turnId)?.controller.abort("handed-back" satisfies StopReason);
    runs.set(turn.turnId, run);
    const reason = early.get(turn.turnId);
    if (reason) run.controller.abort(reason);
    stopTick ??= clock.after(TICK_MS, tick);
    const ended = agent ? runAndEnd(parts, run) : endRemoved(parts, claimed);
    ended
      .catch((error: unknown) => events.unexpectedError({ error, where: "runner" }))
      .finally(() => {
        if (runs.get(turn.turnId) === run) runs.delete(turn.turnId);
        letGo(turn.agent);
      });
  };

  /** Turns whose lease ended are another's, or nobody's: what they write here would be thrown away. */
  const stopLost = (lost: readonly Claim[]): void => {
    for (const { turnId, fence } of lost) {
      const run = runs.get(turnId);
      if (run?.claimed.claim.fence === fence) run.controller.abort("handed-back" satisfies StopReason);
    }
  };

  const tick = (): void => {
    stopTick = runs.size > 0 ? clock.after(TICK_MS, tick) : undefined;
    const time = clock.monotonic();
    const held: Claim[] = [];
    for (const { claimed, agent, controller, since } of runs.values()) {
      held.push(claimed.claim);
      if (agent && time - since >= agent.deadlineMs) controller.abort("timeout" satisfies StopReason);
    }
    if (held.length === 0 || time - lastExtended < LEASE_MS / 3) return;
    lastExtended = time;
    store.extendClaims(held, LEASE_MS).then(stopLost, (error: unknown) => {
      events.storeFailed({ operation: "extendClaims", error });
    });
  };

  return {
    node,
    /** A place for a turn of this agent, when there is one: give it to `startTurn`, then to `begin` or back. */
    reserve(
      agent: string,
    ): { request: NonNullable<Parameters<Store["startTurn"]>[0]["claim"]>; free: () => void } | undefined {
      if (state !== "running" || wanted || claiming || taken >= concurrency() || freeOf(agent) < 1) return undefined;
      hold(agent, 1);
      const now = clock.now();
      return {
        request: { now, node, leaseMs: LEASE_MS, replyMessageId: newId("msg", now) },
        free: () => letGo(agent),
      };
    },
    begin: (claimed: ClaimedTurn) => begin(claimed, true),
    wake,
    stop(turnId: string, reason: StopReason): void {
      const run = runs.get(turnId);
      run?.controller.abort(reason);
      if (run) return;
      early.set(turnId, reason);
      clock.after(EARLY_STOP_MS, () => early.delete(turnId));
    },
    running: () => taken,
    runningOf: (agent: string) => runningOf.get(agent) ?? 0,
    /**
     * Takes no new turns of a durable store (those of one that forgets are run as long as there is time), lets what runs go on for
     * `ms`, then gives the rest back. Answers how many were given back.
     */
    async drain(ms: number): Promise<number> {
      state = "draining";
      const isIdle = () => taken === 0 && (store.durable || store.stats().turnsQueued === 0);
      if (!isIdle()) {
        await new Promise<void>((resolve) => {
          clock.after(ms, resolve);
          whenIdle = () => queueMicrotask(() => isIdle() && resolve());
        });
      }
      state = "stopped";
      const left = runs.size;
      if (left > 0) {
        const idle = new Promise<void>((resolve) => (whenIdle = resolve));
        for (const { controller } of runs.values()) controller.abort("handed-back" satisfies StopReason);
        await idle;
      }
      stopTick?.();
      stopDue?.();
      return left;
    },
  };
};

export type Runner = ReturnType<typeof createRunner>;

const runAndEnd = async (parts: RunnerParts, { claimed, agent, controller }: Run): Promise<void> => {
  const { clock, events, live, skills } = parts;
  const { turn, message } = claimed;
  const began = clock.monotonic();
  const reply = live.open(turn.turnId, claimed.replyMessageId, claimed.replySeq);
  events.turnStarted({
    turnId: turn.turnId,
    agent: turn.agent,
    attempt: turn.attempt,
    queuedMs: clock.now() - turn.createdAt,
  });
  const outcome = await runTurn(
    agent.backend,
    {
      turnId: turn.turnId,
      sessionId: turn.sessionId,
      agent: turn.agent,
      attempt: turn.attempt,
      model: turn.model ?? agent.model,
      instructions: agent.instructions,
      skills: turn.skillIds.length === 0 ? [] : skills.bodies(turn.skillIds),
      message,
      history: () => readHistory(parts.store, claimed),
    },
    controller.signal,
    (text) => live.append(reply, text),
  );
  const ms = clock.monotonic() - began;
  if (outcome.thrown !== undefined)
    events.backendFailed({ turnId: turn.turnId, agent: turn.agent, error: outcome.thrown });
  const row: UsageRow = { model: turn.model ?? agent.model ?? agent.backend.kind, usage: outcome.usage, latencyMs: ms };
  // The agent may have left the configuration meanwhile: then nobody would claim the turn again.
  const again = parts.agents.find(turn.agent) ? retryDelay(outcome, turn.attempt, agent.deadlineMs) : undefined;
  if (outcome.status === "handed-back" && again === undefined) outcome.error = removed(turn.agent);
  const kept = await commit(parts, claimed, outcome, row, again);
  live.close(reply);
  if (!kept) {
    // Its session was deleted, or its lease ended and it goes on elsewhere.
    if (!(await parts.store.getTurn(turn.turnId))) parts.journal.turnErased(turn.turnId);
    return;
  }
  if (again === undefined)
    events.turnEnded({ turnId: turn.turnId, agent: turn.agent, outcome: statusOf(outcome), attempt: turn.attempt, ms });
  else events.turnRetried({ turnId: turn.turnId, agent: turn.agent, attempt: turn.attempt, delayMs: again });
};

/** How long to wait before the next attempt; undefined when this one was the last, or the backend asks for longer than a turn may take. */
const retryDelay = ({ status, retryAfterMs }: Outcome, attempt: number, deadlineMs: number): number | undefined => {
  if (status === "handed-back") return 0;
  if (status !== "retry" || attempt >= MAX_ATTEMPTS || (retryAfterMs ?? 0) > deadlineMs) return undefined;
  const backoff = FIRST_BACKOFF_MS * 2 ** (attempt - 1);
  return Math.max(retryAfterMs ?? 0, backoff * (0.5 + Math.random() / 2));
};

const statusOf = ({ status }: Outcome): TurnEnd["status"] =>
  status === "retry" || status === "handed-back" ? "failed" : status;

/** Keeps the end of a turn. A store that does not answer is asked again: past its lease the turn is another's. */
const commit = async (
  { store, clock, events }: RunnerParts,
  { claim }: ClaimedTurn,
  outcome: Outcome,
  usage: UsageRow,
  again: number | undefined,
): Promise<boolean> => {
  for (let tries = 1; ; tries++) {
    try {
      const now = clock.now();
      if (again !== undefined) return await store.releaseTurn(claim, { now, delayMs: again, usage });
      const { reply, error } = outcome;
      return await store.endTurn(claim, { now, status: statusOf(outcome), reply, error, usage });
    } catch (error) {
      events.storeFailed({ operation: "endTurn", error });
      if (tries === COMMIT_TRIES) throw error;
      await new Promise<void>((resolve) => clock.after(200 * 2 ** tries, resolve));
    }
  }
};

const endRemoved = async ({ store, clock }: RunnerParts, { claim, turn }: ClaimedTurn): Promise<void> => {
  const error = removed(turn.agent);
  await store.endTurn(claim, { now: clock.now(), status: "failed", reply: "", error, usage: undefined });
};

const removed = (agent: string): TurnError => ({
  name: "agent-removed",
  detail: `the agent ${agent} left the configuration`,
});
