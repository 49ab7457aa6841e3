import { type Agent, type Agents, labelOfModel } from "#core/agents/agents.ts";
import type { Journal } from "#core/sessions/journal.ts";
import type { Skills } from "#core/skills/skills.ts";
import type { Clock } from "#kit/clock.ts";
import { Stop, type StopSignal } from "#kit/stop-signal.ts";
import type { Events } from "#observe/events.ts";
import type { AtOnce, ClaimedTurn, Store, TurnEnd, TurnError, UsageRow } from "#store/store.ts";
import { AskedTurn, noteOn } from "./asked-turn.ts";
import type { LiveReplies, LiveReply } from "./live-replies.ts";
import type { RetryBudget } from "./retry-budget.ts";
import { type Note, type Outcome, type RunListener, runAtOnce, runTurn, type StopReason } from "./run-turn.ts";
import type { TurnWatch, TurnWatches } from "./turn-watch.ts";

export const MAX_ATTEMPTS = 3;
const FIRST_BACKOFF_MS = 500;
const COMMIT_TRIES = 5;

export type AttemptParts = {
  store: Store;
  agents: Agents;
  skills: Skills;
  journal: Journal;
  live: LiveReplies;
  clock: Clock;
  events: Events;
  retries: RetryBudget;
};

/** `over` is called once for each run, with what went wrong where how it ended could not be kept: perhaps before it was begun to its end. */
type RunParts = AttemptParts & {
  watches: TurnWatches;
  over: (run: Run, failed: { error: unknown } | undefined) => void;
};

/** A turn that runs here. Its signal is made when somebody asks: a turn that is answered at once needs none. */
export class Run {
  readonly claimed: ClaimedTurn;
  readonly agent: Agent;
  readonly since: number;
  stopped: StopReason | undefined = undefined;
  /** How it ended is on the way to the store. */
  isEnding = false;
  #stop: Stop | undefined = undefined;

  constructor(claimed: ClaimedTurn, agent: Agent, since: number) {
    this.claimed = claimed;
    this.agent = agent;
    this.since = since;
  }

  get signal(): StopSignal {
    this.#stop ??= new Stop();
    if (this.stopped) this.#stop.abort(this.stopped);
    return this.#stop;
  }

  stop(reason: StopReason): void {
    this.stopped ??= reason;
    this.#stop?.abort(reason);
  }
}

/**
 * Runs a claimed turn once, and keeps how that ended: its end, or that it is tried again. No promise where neither the backend nor the
 * store has to be waited for.
 */
export const runAndEnd = (parts: RunParts, run: Run): void => {
  try {
    const { claimed, agent } = run;
    const { turn } = claimed;
    const began = parts.clock.monotonic();
    const queuedMs = parts.clock.now() - turn.createdAt;
    parts.events.turnStarted({ turnId: turn.turnId, agent: turn.agent, attempt: turn.attempt, queuedMs });
    const asked = new AskedTurn(parts, claimed, agent);
    const atOnce = run.stopped === undefined ? runAtOnce(agent.backend, asked) : undefined;
    if (atOnce) endRun(parts, run, keepEnd(parts, run, atOnce, began));
    else new RunInPieces(parts, run, asked, began).begin();
  } catch (error) {
    parts.over(run, { error });
  }
};

const endRun = (parts: RunParts, run: Run, keeping: AtOnce<void>): void => {
  if (keeping instanceof Promise)
    keeping.then(
      () => parts.over(run, undefined),
      (error: unknown) => parts.over(run, { error }),
    );
  else parts.over(run, undefined);
};

/** A run whose reply is read while it is written. */
class RunInPieces implements RunListener {
  readonly #parts: RunParts;
  readonly #run: Run;
  readonly #asked: AskedTurn;
  readonly #began: number;
  readonly written: LiveReply;
  readonly #watch: TurnWatch;

  constructor(parts: RunParts, run: Run, asked: AskedTurn, began: number) {
    const { turn, replyMessageId, replySeq } = run.claimed;
    this.#parts = parts;
    this.#run = run;
    this.#asked = asked;
    this.#began = began;
    this.written = parts.live.open(turn.turnId, turn.sessionId, replyMessageId, replySeq);
    this.#watch = parts.watches.open(run.agent, run);
    asked.watch = this.#watch;
  }

  begin(): void {
    runTurn(this.#run.agent.backend, this.#asked, this.#run.signal, this);
  }

  text(text: string): void {
    this.#parts.live.append(this.written, text);
  }

  note(note: Note): void {
    if (note.name === "usage.unknown") this.#parts.events.usageUnknown({ agent: this.#run.agent.name });
    noteOn(this.#parts, this.#run.claimed, note);
  }

  alive(): void {
    this.#watch.alive();
  }

  anew(): void {
    this.#watch.anew();
  }

  over(outcome: Outcome): void {
    this.#watch.stop();
    try {
      const keeping = keepEnd(this.#parts, this.#run, outcome, this.#began);
      if (keeping instanceof Promise)
        keeping.then(
          () => this.#close(undefined),
          (error: unknown) => this.#close({ error }),
        );
      else this.#close(undefined);
    } catch (error) {
      this.#close({ error });
    }
  }

  /** Once the reply is kept, or cannot be. */
  #close(failed: { error: unknown } | undefined): void {
    this.#parts.live.close(this.written);
    this.#parts.over(this.#run, failed);
  }
}

/** Keeps how an attempt ended, and tells of it. */
const keepEnd = (parts: AttemptParts, run: Run, outcome: Outcome, began: number): AtOnce<void> => {
  const ms = parts.clock.monotonic() - began;
  const again = decide(parts, run, outcome, ms);
  const end = endOf(parts, run, outcome, ms, again);
  let kept: AtOnce<boolean>;
  try {
    kept = end();
  } catch (error) {
    kept = Promise.reject(error);
  }
  if (kept === true) return tellEnd(parts, run, outcome, ms, again);
  return keepEndLater(parts, run, { outcome, ms, again, end, kept });
};

const keepEndLater = async (
  parts: AttemptParts,
  run: Run,
  { outcome, ms, again, end, kept }: { outcome: Outcome; ms: number; again: number | undefined } & Ending,
): Promise<void> => {
  let isOurs: boolean;
  run.isEnding = again === undefined;
  try {
    isOurs = await kept;
  } catch (error) {
    isOurs = await endAgain(parts, end, error);
  }
  if (isOurs) {
    tellEnd(parts, run, outcome, ms, again);
    return;
  }
  // Its session was deleted, or its lease ended and it goes on elsewhere.
  const { turnId, agent, attempt } = run.claimed.turn;
  const turn = await parts.store.getTurn(turnId);
  if (!turn) parts.journal.turnErased(turnId);
  else if (turn.attempt > attempt || turn.status === "queued") parts.events.turnLost({ turnId, agent, attempt });
};
type Ending = { end: () => AtOnce<boolean>; kept: AtOnce<boolean> };

const tellEnd = (parts: AttemptParts, run: Run, outcome: Outcome, ms: number, again: number | undefined): void => {
  const { events } = parts;
  const { turnId, agent, attempt } = run.claimed.turn;
  if (again === undefined) events.turnEnded({ turnId, agent, outcome: statusOf(outcome), attempt, ms });
  else {
    events.turnRetried({ turnId, agent, attempt, delayMs: Math.round(again) });
    noteReturned(parts, run, outcome, again);
  }
};

/** Why an attempt was given back, which no journal tells. */
const noteReturned = (parts: AttemptParts, run: Run, { status, error }: Outcome, delay: number): void => {
  const reason = status === "handed-back" ? "the gateway stopped" : error?.detail;
  const { attempt } = run.claimed.turn;
  noteOn(parts, run.claimed, { name: "turn.returned", detail: { attempt, reason, delay_ms: Math.round(delay) } });
};

/** After how long the turn is tried again; undefined when that was its end. */
const decide = (
  { events, agents, store, retries }: AttemptParts,
  { claimed, agent }: Run,
  outcome: Outcome,
  ms: number,
): number | undefined => {
  const { turn } = claimed;
  if (outcome.thrown !== undefined) {
    events.backendFailed({ turnId: turn.turnId, agent: turn.agent, error: outcome.thrown });
  }
  // The agent may have left the configuration meanwhile: then nobody would claim the turn again, but a gateway that has it still.
  const again =
    agents.find(turn.agent) || store.shared
      ? retryDelay(outcome, turn.attempt, agent.deadlineMs - claimed.spentMs - ms)
      : undefined;
  if (outcome.status === "handed-back" && again === undefined) outcome.error = removed(turn.agent);
  if (outcome.status === "retry" && again !== undefined && !retries.take(turn.agent)) return undefined;
  if (again === undefined) retries.earn(turn.agent);
  return again;
};

/** What keeps the end of an attempt, or gives the turn back; false when it was not ours any more. */
const endOf = (
  { store, clock, events }: AttemptParts,
  { claimed, agent }: Run,
  outcome: Outcome,
  latencyMs: number,
  again: number | undefined,
): (() => AtOnce<boolean>) => {
  const answered = outcome.model ?? claimed.turn.model ?? agent.model;
  const usage: UsageRow = { model: answered ?? agent.backend.kind, usage: outcome.usage, latencyMs };
  const model = answered === claimed.turn.model ? undefined : answered;
  events.attemptUsed({ agent: agent.name, model: labelOfModel(agent, usage.model), usage: outcome.usage });
  const { reply, error } = outcome;
  return () => {
    const now = clock.now();
    return again === undefined
      ? store.endTurn(claimed.claim, { now, status: statusOf(outcome), reply, error, model, usage })
      : store.releaseTurn(claimed.claim, { now, delayMs: again, usage });
  };
};

/** How long to wait before the next attempt; undefined when this one was the last, or the backend asks for longer than the turn has left. */
const retryDelay = ({ status, retryAfterMs }: Outcome, attempt: number, leftMs: number): number | undefined => {
  if (status === "handed-back") return 0;
  if (status !== "retry" || attempt >= MAX_ATTEMPTS || (retryAfterMs ?? 0) > leftMs || leftMs <= 0) return undefined;
  const backoff = FIRST_BACKOFF_MS * 2 ** (attempt - 1);
  return Math.max(retryAfterMs ?? 0, backoff * (0.5 + Math.random() / 2));
};

const statusOf = ({ status }: Outcome): TurnEnd["status"] =>
  status === "retry" || status === "handed-back" ? "failed" : status;

/** Asks a store that did not answer again, a few times: past its lease the turn is another's. */
const endAgain = async (
  { clock, events }: AttemptParts,
  end: () => AtOnce<boolean>,
  first: unknown,
): Promise<boolean> => {
  let failed = first;
  for (let tries = 1; ; tries++) {
    events.storeFailed({ operation: "endTurn", error: failed });
    if (tries === COMMIT_TRIES) throw failed;
    await new Promise<void>((resolve) => clock.after(200 * 2 ** tries, resolve));
    try {
      return await end();
    } catch (error) {
      failed = error;
    }
  }
};

/** Ends the turn of an agent that left the configuration, or leaves it to a gateway that has it still. */
export const endRemoved = async ({ store, clock }: AttemptParts, { claim, turn }: ClaimedTurn): Promise<void> => {
  if (store.shared) {
    await store.releaseTurn(claim, { now: clock.now(), delayMs: 0, usage: undefined });
    return;
  }
  const error = removed(turn.agent);
  await store.endTurn(claim, { now: clock.now(), status: "failed", reply: "", error, usage: undefined });
};

const removed = (agent: string): TurnError => ({
  name: "agent-removed",
  detail: `the agent ${agent} left the configuration`,
});
