import { setImmediate as nextTick } from "node:timers/promises";
import type { BackendTurn } from "#backends/backend.ts";
import { type Agent, labelOfModel } from "#core/agents/agents.ts";
import type { CoreParts } from "#core/parts.ts";
import { earlierOf, readHistory, withoutEarlier } from "#core/sessions/history.ts";
import { skillTools } from "#core/skills/skill-tools.ts";
import { hasSkill } from "#core/skills/skills.ts";
import { createWorker, keepTrying, leaseOfClaims, type Worker } from "#core/worker.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { abortSignalOf, Stop } from "#kit/stop-signal.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import type { Claim, ClaimedTurn, ClaimRequest, ToolCall, UsageRow } from "#store/store.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import { type Note, type Outcome, runTurn, type StopReason, TurnWatch } from "./run-turn.ts";

export const MAX_ATTEMPTS = 3;
const FIRST_BACKOFF_MS = 500;
/** Turns that are claimed in one go. */
const CLAIMED_AT_ONCE = 64;
/** The log's `store.failed` tells the results of these. */
const STORE_TROUBLE: ReadonlySet<string> = new Set(["store-unavailable", "store-full"]);
/** The time that a stop waits for a run that is about to begin; it may be meant for another node. */
const EARLY_STOP_MS = 5_000;
/** Calls of tools that are kept with a reply. */
const MOST_TOOL_CALLS = 100;

type RunParts = CoreParts & { retries: RetryBudget };

/** A turn that runs here. */
type Run = { claimed: ClaimedTurn; claim: Claim; stop: Stop };

/** A place for a turn that is about to be stored: its claim for `startTurn`, and how the place is given back where nothing was claimed. */
type Place = { claim: ClaimRequest; free: () => void };

/**
 * Claims turns and runs them: one at a time in a session (the store sees to that), at most `concurrency` in all and as many of an
 * agent as the agent says. A full agent makes only its own turns wait.
 */
export const createRunner = (parts: RunParts) => {
  const { store, agents, clock, node } = parts;
  const concurrency = () => parts.settings().concurrency;
  const lease = leaseOfClaims<Run>(store);
  const leaseMs = lease.ms;
  const runningOf = new Map<string, number>();
  /** Stops that came between a turn's claim and its run. */
  const earlyStops = new Map<string, StopReason>();
  /** Agents that had no place when turns were claimed: some of theirs may be ready, and nobody will tell of them again. */
  const full = new Set<string>();
  let taken = 0;

  const freeOf = (name: string): number => {
    const agent = agents.find(name);
    return agent ? agent.concurrency - (runningOf.get(name) ?? 0) : 0;
  };
  const takePlace = (name: string): void => {
    taken++;
    runningOf.set(name, (runningOf.get(name) ?? 0) + 1);
  };
  const freePlace = (name: string): void => {
    taken--;
    runningOf.set(name, (runningOf.get(name) ?? 0) - 1);
    if (full.delete(name) || worker.isBehind() || worker.state() !== "running") worker.wake();
  };

  const claim = async () => {
    const { turns, nextDueInMs } = await store.claimTurns({
      now: clock.now(),
      node,
      leaseMs,
      free: Math.min(concurrency() - taken, CLAIMED_AT_ONCE),
      freeOf: (name) => {
        const free = freeOf(name);
        if (free < 1) full.add(name);
        return free;
      },
      newMessageId: () => newId("msg", clock.now()),
    });
    for (const { turn } of turns) takePlace(turn.agent);
    return { works: turns.map(runOf), mayBeMore: turns.length > 0, nextDueInMs };
  };

  const worker: Worker<Run> = createWorker<Run>({
    ...{ store, clock, events: parts.events, name: "runner" },
    keyOf: ({ claimed }) => claimed.turn.turnId,
    run: (run) => {
      const { turnId, agent } = run.claimed.turn;
      const reason = earlyStops.get(turnId);
      if (reason) run.stop.abort(reason);
      return runClaimed(parts, run, agents.find(agent));
    },
    giveBack: ({ stop }) => stop.abort("handed-back"),
    ended: ({ claimed }) => freePlace(claimed.turn.agent),
    queue: { operation: "claimTurns", hasRoom: () => taken < concurrency(), claim },
    lease,
  });

  const hasClaimable = ({ name }: Agent): boolean => {
    const { queued, pausedAt } = store.agentCounts(name);
    return queued > 0 && pausedAt === undefined;
  };

  return {
    /** A place for a turn of this agent, when there is one that no claim under way may take. */
    reserve(agent: string): Place | undefined {
      const least = worker.isBehind() ? CLAIMED_AT_ONCE : 0;
      if (worker.state() !== "running" || concurrency() - taken <= least || freeOf(agent) <= least) return undefined;
      takePlace(agent);
      const now = clock.now();
      return {
        claim: { now, node, leaseMs, replyMessageId: newId("msg", now) },
        free: () => freePlace(agent),
      };
    },
    /** Runs a turn whose place was reserved. */
    begin: (claimed: ClaimedTurn): void => worker.begin(runOf(claimed)),
    wake: worker.wake,
    stop(turnId: string, reason: StopReason): void {
      const run = worker.get(turnId);
      run?.stop.abort(reason);
      if (run) return;
      earlyStops.set(turnId, reason);
      clock.after(EARLY_STOP_MS, () => earlyStops.delete(turnId));
    },
    running: () => taken,
    runningOf: (agent: string) => runningOf.get(agent) ?? 0,
    /**
     * Takes no new turns of a durable store (those of one that forgets are run as long as there is time), lets what runs go on for
     * `ms`, then gives the rest back. Answers how many were given back.
     */
    drain(ms: number): Promise<number> {
      const isIdle = () => taken === 0;
      const isDone = () => isIdle() && (store.durable || !agents.list().some(hasClaimable));
      return worker.drain({ ms, isIdle, isDone });
    },
  };
};

export type Runner = ReturnType<typeof createRunner>;

const runOf = (claimed: ClaimedTurn): Run => ({ claimed, claim: claimed.claim, stop: new Stop() });

const runClaimed = async (parts: RunParts, run: Run, agent: Agent | undefined): Promise<void> => {
  const { message, turn } = run.claimed;
  try {
    // To keep a large message took a while, and so will its reply.
    if (message.text.length > IN_STRETCHES_FROM) await nextTick();
    if (agent) await runAttempt(parts, run, agent);
    // It left the configuration meanwhile. What waits for it is given up where no gateway has it any more.
    else await parts.store.releaseTurn(run.claim, { now: parts.clock.now(), delayMs: 0, usage: undefined });
  } catch (error) {
    const { name } = GatewayError.from(error);
    // Past its lease it runs again, wherever the store is by then.
    if (STORE_TROUBLE.has(name)) parts.events.storeFailed({ operation: "runTurn", error });
    else parts.events.unexpectedError({ error, where: "runner" });
    // A store that is away comes back, but room has to be made by somebody.
    if (name === "store-full") parts.journal.turnUnkept(turn);
  }
};

/** Runs a claimed turn once, and keeps how that ended: its end, or that it is tried again. */
const runAttempt = async (parts: RunParts, { claimed, stop }: Run, agent: Agent): Promise<void> => {
  const { clock, events, live } = parts;
  const { turn } = claimed;
  const began = clock.monotonic();
  const queuedMs = clock.now() - turn.createdAt;
  events.turnStarted({ turnId: turn.turnId, agent: turn.agent, attempt: turn.attempt, queuedMs });
  const reply = live.open(turn.turnId, turn.sessionId, claimed.replyMessageId, claimed.replySeq);
  const watch = new TurnWatch(clock, agent, claimed.spentMs, stop);
  let toolCalls: ToolCall[] | undefined;
  const note = (note: Note): void => {
    if (note.name === "usage.unknown") events.usageUnknown({ agent: agent.name });
    if (note.name === "tool.called") toolCalls = withCall(toolCalls, note.detail);
    noteOn(parts, claimed, note);
  };
  try {
    const outcome = await runTurn(agent.backend, askedTurn(parts, claimed, agent, watch, note), stop, {
      written: reply,
      text: (text) => live.append(reply, text),
      note,
      watch,
    });
    watch.stop();
    await keepEnd(parts, claimed, agent, outcome, toolCalls, clock.monotonic() - began);
  } finally {
    watch.stop();
    live.close(reply);
  }
};

/** Keeps how an attempt ended: the turn's end, or that it is tried again. Tells of it. */
const keepEnd = async (
  parts: RunParts,
  claimed: ClaimedTurn,
  agent: Agent,
  outcome: Outcome,
  toolCalls: ToolCall[] | undefined,
  ms: number,
): Promise<void> => {
  const { store, clock, events } = parts;
  const { claim, turn } = claimed;
  const { turnId, attempt } = turn;
  const { reply, error, thrown } = outcome;
  if (thrown !== undefined) events.backendFailed({ turnId, agent: agent.name, error: thrown });
  const retryInMs = retryAfter(parts.retries, claimed, agent, outcome, ms);
  const answered = outcome.model ?? turn.model ?? agent.model;
  const counted = parts.countedModels(agent, answered);
  const usage: UsageRow = { model: counted, usage: outcome.usage, latencyMs: ms };
  const model = answered === turn.model ? undefined : answered;
  const status = outcome.status === "retry" || outcome.status === "handed-back" ? "failed" : outcome.status;
  events.attemptUsed({ agent: agent.name, model: labelOfModel(agent, usage.model), usage: outcome.usage });
  const isOurs = await keepTrying(parts, "endTurn", () =>
    retryInMs === undefined
      ? store.endTurn(claim, { now: clock.now(), status, reply, toolCalls, error, model, usage })
      : store.releaseTurn(claim, { now: clock.now(), delayMs: retryInMs, usage }),
  );
  if (!isOurs) return await tellLost(parts, turn);
  if (retryInMs === undefined) return events.turnEnded({ turnId, agent: agent.name, outcome: status, attempt, ms });
  const delayMs = Math.round(retryInMs);
  events.turnRetried({ turnId, agent: agent.name, attempt, delayMs });
  // The journal does not tell why an attempt was given back.
  const reason = outcome.status === "handed-back" ? "the gateway stopped" : error?.detail;
  noteOn(parts, claimed, { name: "turn.returned", detail: { attempt, reason, delay_ms: delayMs } });
};

/** With a call as its note tells it. The names and reasons may be somebody else's, of any length. */
const withCall = (calls: ToolCall[] = [], { tool, ok, ms, reason }: Note["detail"]): ToolCall[] => {
  const call = { tool: String(tool).slice(0, 200), ok: ok === true, ms: Number(ms) };
  if (calls.length < MOST_TOOL_CALLS)
    calls.push(typeof reason === "string" ? { ...call, reason: reason.slice(0, 500) } : call);
  return calls;
};

/** The turn's session was deleted, or its lease ended and it goes on elsewhere. */
const tellLost = async (
  { store, events }: RunParts,
  { turnId, agent, attempt }: ClaimedTurn["turn"],
): Promise<void> => {
  const turn = await store.getTurn(turnId);
  if (turn && (turn.attempt > attempt || turn.status === "queued")) events.turnLost({ turnId, agent, attempt });
};

/** After how long the turn is tried again; undefined when that was its end. */
const retryAfter = (
  retries: RetryBudget,
  { turn, spentMs }: ClaimedTurn,
  agent: Agent,
  outcome: Outcome,
  ms: number,
): number | undefined => {
  const delayMs = backoffOf(outcome, turn.attempt, agent.deadlineMs - spentMs - ms);
  if (outcome.status === "retry" && delayMs !== undefined && !retries.take(turn.agent)) return undefined;
  if (delayMs === undefined) retries.earn(turn.agent);
  return delayMs;
};

/** The wait before the next attempt; undefined after the last one, or if the backend asks for longer than the turn has left. */
const backoffOf = ({ status, retryAfterMs = 0 }: Outcome, attempt: number, leftMs: number): number | undefined => {
  if (status === "handed-back") return 0;
  if (status !== "retry" || attempt >= MAX_ATTEMPTS || retryAfterMs > leftMs || leftMs <= 0) return undefined;
  const backoff = FIRST_BACKOFF_MS * 2 ** (attempt - 1);
  return Math.max(retryAfterMs, backoff * (0.5 + Math.random() / 2));
};

/** Retries of an agent's turns that may be made at once, and how much of one each turn that ended gives back. */
const MOST_RETRIES = 100;
const EARNED = 0.2;

/**
 * Bounds what retries add to the load of a backend that is down: past its budget an agent's turns fail with their first attempt, until
 * others have ended.
 */
export const createRetryBudget = () => {
  const left = new Map<string, number>();
  return {
    take(agent: string): boolean {
      const now = left.get(agent) ?? MOST_RETRIES;
      if (now < 1) return false;
      left.set(agent, now - 1);
      return true;
    },
    earn(agent: string): void {
      const now = left.get(agent);
      if (now === undefined) return;
      if (now + EARNED >= MOST_RETRIES) left.delete(agent);
      else left.set(agent, now + EARNED);
    },
  };
};

type RetryBudget = ReturnType<typeof createRetryBudget>;

/** A turn as its backend gets it. The watch must not take for silence that a tool is at work. */
const askedTurn = (
  parts: RunParts,
  claimed: ClaimedTurn,
  agent: Agent,
  watch: TurnWatch,
  note: (note: Note) => void,
): BackendTurn => {
  const { store, skills, retries } = parts;
  const { turn, message, hops } = claimed;
  return {
    turnId: turn.turnId,
    sessionId: turn.sessionId,
    agent: turn.agent,
    attempt: turn.attempt,
    model: turn.model ?? agent.model,
    instructions: agent.instructions,
    skills: skills.bodies(turn.skillIds),
    message: withoutEarlier(message),
    hops,
    earlier: earlierOf(message),
    history: () => readHistory(store, claimed),
    offered: () => skills.list().filter(({ skillId }) => !turn.skillIds.includes(skillId) && hasSkill(agent, skillId)),
    watch,
    mayRetry: () => retries.take(turn.agent),
    tools: async (signal) => {
      const own = skillTools(skills, agent);
      const theirs = agent.toolSource && (await watch.pause(agent.toolSource.tools(abortSignalOf(signal), hops)));
      for (const { server, reason } of theirs?.missing ?? [])
        note({ name: "tool.unavailable", detail: { server, reason } });
      return [...own, ...(theirs?.tools ?? [])].map((tool) => notedTool(parts.clock, watch, note, tool));
    },
  };
};

/** The tool, each call of which is noted. */
const notedTool = (clock: Clock, watch: TurnWatch, note: (note: Note) => void, tool: Tool): Tool => ({
  ...tool,
  call: async (args, signal) => {
    const began = clock.monotonic();
    const noteCall = (detail: object) => {
      const ms = Math.round(clock.monotonic() - began);
      note({ name: "tool.called", detail: { tool: tool.name, ms, ...detail } });
    };
    try {
      const answer = await watch.pause(tool.call(args, signal));
      noteCall({ ok: true, characters: answer.length });
      return answer;
    } catch (error) {
      noteCall({ ok: false, reason: error instanceof ToolError ? error.message : "the tool failed" });
      throw error;
    }
  },
});

/** Puts a step on a turn's timeline. The turn does not depend on it. */
const noteOn = ({ store, clock }: RunParts, { turn: { deliveryId } }: ClaimedTurn, { name, detail }: Note): void => {
  if (deliveryId === undefined) return;
  store.addDeliveryStep(deliveryId, { at: clock.now(), name, detail: JSON.stringify(detail) }).catch(() => {});
};
