import { type Agent, checkModel, requireAwake } from "#core/agents/agents.ts";
import type { CoreParts } from "#core/parts.ts";
import type { SessionPlace } from "#core/sessions/sessions.ts";
import type { TurnEndEntry } from "#core/sessions/turn-entries.ts";
import { checkSkills } from "#core/skills/skills.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { idLike, newId } from "#kit/ids.ts";
import { reaches } from "#kit/reach.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { ClaimedTurn, Turn, TurnOrder, TurnStart } from "#store/store.ts";
import { reportRefusedBy } from "./budget-refusals.ts";
import type { Runner } from "./runner.ts";

type OptionalField = "outside" | "context" | "announce" | "model" | "skillIds" | "delivery" | "group";

/** The request of every surface that starts work. */
export type TurnRequest = Pick<TurnOrder, "surface" | "caller" | "text"> & {
  [Field in OptionalField]?: TurnOrder[Field] | undefined;
} & {
  place: SessionPlace;
  /** The number of announcements and agents that the cause of the turn has passed through. */
  hops?: number;
  /** The longest time for which the caller waits for the reply. Undefined if the caller does not wait. */
  waitMs?: number | undefined;
  /** True if the caller reads the reply while it is being written. */
  streamed?: boolean;
  /** The only agents that the caller may use; undefined for all. */
  agents?: readonly string[] | undefined;
  idempotency?: { key: string; hash: string } | undefined;
  /** Stores the turn in place of `startTurn`, with its own records. */
  startWith?: ((order: TurnOrder) => Promise<TurnStart>) | undefined;
  /** Called once the turn is stored and before it can end. `replySeq` is set if the reply has begun. */
  follow?: ((turn: Turn, replySeq: number | undefined) => void) | undefined;
  /** Returns a signal that is aborted when the caller disconnects. Called only after a while, because most turns end before a signal is needed. */
  callerSignal?: (() => AbortSignal) | undefined;
};

/** The parts of a request that decide whether it repeats another one, and how it waits. */
type Repeatable = Pick<TurnRequest, "idempotency" | "agents" | "waitMs" | "callerSignal" | "follow">;

/** `joinedBy`: the delivery of a request that joined the open group of the turn, also if the request is repeated. */
export type Started = { turn: Turn; replayed: boolean; joinedBy?: string | undefined };

export const IDEMPOTENCY_MS = 24 * 3_600_000;
const CANCEL_WAIT_MS = 1_000;
const SIGNAL_AFTER_MS = 100;

export type TurnParts = CoreParts & { runner: Runner };

export function createTurns(parts: TurnParts) {
  const { store, clock } = parts;
  const get = async (turnId: string): Promise<Turn> => {
    const turn = await store.getTurn(turnId);
    if (!turn) throw turnNotFound(turnId);
    return turn;
  };

  /** Returns the turn once it has ended, or its state after `ms`. Starts a `claimed` turn first. */
  const wait = async (
    turn: Turn,
    ms: number,
    callerSignal?: TurnRequest["callerSignal"],
    claimed?: ClaimedTurn,
  ): Promise<Turn> => {
    const { turnId } = turn;
    const waiting = new EndWait(parts, turn, ms, callerSignal, claimed ? SIGNAL_AFTER_MS : 0);
    try {
      if (claimed) parts.runner.begin(claimed);
      const now = claimed ? turn : await get(turnId);
      if (isEnded(now)) return now;
      const end = await waiting.ended;
      if (end === "erased") throw erased(turnId);
      return end === "over" ? await get(turnId) : withEnd(turn, end);
    } finally {
      waiting.close();
    }
  };

  const findReplay = async (request: Repeatable): Promise<Started | undefined> => {
    const { idempotency, waitMs, callerSignal, follow } = request;
    const found = idempotency && (await store.findReplay(idempotency, clock.now()));
    if (!found) return undefined;
    const { turn, joinedBy } = found;
    requireReplay(request, turn);
    follow?.(turn, undefined);
    return { turn: waitMs === undefined ? turn : await wait(turn, waitMs, callerSignal), replayed: true, joinedBy };
  };

  return {
    /**
     * Starts a turn; all surfaces use this. Rejects a request that cannot run. Otherwise stores message, turn, idempotency key and delivery in one
     * transaction, and resolves when they are stored. With `waitMs`, resolves when the turn has ended, or after that time.
     */
    async start(request: TurnRequest): Promise<Started> {
      // Parsing and storing a large text blocks the event loop: other calls run in between. Only REST, because its calls need not stay in order.
      if (request.text.length > IN_STRETCHES_FROM && request.surface === "rest") await yieldToOthers();
      // A repeated request gets the first answer, even if the agent or its skills have changed or the gateway is full.
      const replay = request.idempotency && (await findReplay(request));
      if (replay) return replay;
      const agent = agentFor(parts, request);
      const claim = request.group ? undefined : parts.runner.reserve(agent.name);
      let started: TurnStart | undefined;
      try {
        const order = orderOf(parts, request, agent, claim);
        started = await (request.startWith?.(order) ?? store.startTurn(order));
      } catch (error) {
        reportRefusedBy(parts, error);
        throw request.agents ? withoutAgent(error) : error;
      } finally {
        if (claim && !started?.claimed) parts.runner.free(agent.name);
      }
      const { turn, replayed, claimed, joinedBy } = started;
      if (replayed) requireReplay(request, turn);
      request.follow?.(turn, claimed?.replySeq);
      if (request.waitMs !== undefined)
        return { turn: await wait(turn, request.waitMs, request.callerSignal, claimed), replayed };
      if (claimed) parts.runner.begin(claimed);
      return joinedBy === undefined ? { turn, replayed } : { turn, replayed, joinedBy };
    },

    /** The turn that an earlier request with the same idempotency key started. */
    findReplay,

    get,

    wait: (turn: Turn, ms: number, callerSignal?: TurnRequest["callerSignal"]): Promise<Turn> =>
      wait(turn, ms, callerSignal),

    /** Cancels a turn. Resolves with the turn when it has ended, or with its current state after a second. */
    async cancel(turnId: string): Promise<Turn> {
      const turn = await store.cancelTurn(turnId, clock.now());
      return turn.status === "running" ? await wait(turn, CANCEL_WAIT_MS) : turn;
    },
  };
}

export type Turns = ReturnType<typeof createTurns>;

/** A later key of the same name gets the idempotency keys of the earlier one, but possibly not all of its agents. */
function requireReplay(request: Repeatable, { agent }: Turn): void {
  if (reaches(request, agent)) return;
  throw new GatewayError("forbidden", "The idempotency key started a turn of an agent that the caller may not use.");
}

/** The error of a conflict names the agent of the session, which a caller with limited agents may not know. */
function withoutAgent(error: unknown): unknown {
  const isConflict = error instanceof GatewayError && error.name === "session-conflict";
  return isConflict ? new GatewayError("session-conflict", "The session belongs to another agent.") : error;
}

/** Returns the agent of a request. Throws if the agent cannot run the turn now. */
export function agentFor({ agents, skills, admit }: TurnParts, request: TurnRequest): Agent {
  admit();
  const agent = agents.get(request.place.agent, request.agents);
  checkModel(agent, request.model);
  if (request.skillIds?.length) checkSkills(skills, agent, request.skillIds);
  if (isWaitedFor(request)) requireAwake(agent, request.model);
  return agent;
}

/** The result of a wait. `over`: the time has passed, the caller has disconnected, or the end could not be stored. `erased`: the turn was deleted with its session. */
type WaitEnd = TurnEndEntry | "over" | "erased";

/** Waits for the end of a turn. Requests the caller's signal only after `askAfterMs`: most turns end earlier. */
class EndWait {
  readonly ended: Promise<WaitEnd>;
  readonly #clock: Clock;
  readonly #callerSignal: TurnRequest["callerSignal"];
  readonly #unfollow: () => void;
  #end: (end: WaitEnd) => void = () => {};
  #signal: AbortSignal | undefined = undefined;
  #stopTimer: () => void;

  constructor(
    { streams, clock }: TurnParts,
    turn: Turn,
    ms: number,
    callerSignal: TurnRequest["callerSignal"],
    askAfterMs: number,
  ) {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#clock = clock;
    this.#callerSignal = callerSignal;
    this.#unfollow = streams.onTurnEnd(turn, (entry) => this.#end(entry === "not-stored" ? "over" : entry));
    const asksLater = askAfterMs > 0 && askAfterMs < ms;
    if (asksLater) this.#stopTimer = clock.after(askAfterMs, () => this.#ask(ms - askAfterMs));
    else this.#stopTimer = clock.after(ms, this.#leave);
    if (askAfterMs === 0) this.#listen();
  }

  close(): void {
    this.#unfollow();
    this.#stopTimer();
    this.#signal?.removeEventListener("abort", this.#leave);
  }

  readonly #leave = (): void => this.#end("over");

  #ask(leftMs: number): void {
    this.#stopTimer = this.#clock.after(leftMs, this.#leave);
    this.#listen();
  }

  #listen(): void {
    this.#signal = this.#callerSignal?.();
    if (this.#signal?.aborted) this.#leave();
    else this.#signal?.addEventListener("abort", this.#leave, { once: true });
  }
}

function withEnd(turn: Turn, entry: TurnEndEntry): Turn {
  // The turn is copied once and then changed, for speed.
  const ended: Turn = { ...turn, endedAt: entry.at, usage: entry.usage, model: entry.model ?? turn.model };
  if (entry.name === "turn.completed") {
    ended.status = "completed";
    ended.reply = entry.reply;
  } else if (entry.name === "turn.cancelled") {
    ended.status = "cancelled";
    ended.reply = entry.reply || undefined;
  } else {
    ended.status = "failed";
    ended.error = entry.error;
  }
  return ended;
}

function isWaitedFor({ waitMs, streamed }: TurnRequest): boolean {
  return waitMs !== undefined || streamed === true;
}

export function isEnded({ status }: Pick<Turn, "status">): boolean {
  return status !== "queued" && status !== "running";
}

export function turnNotFound(turnId: string): GatewayError {
  return new GatewayError("turn-not-found", `No turn has the id ${turnId}.`);
}

export function erased(turnId: string): GatewayError {
  return new GatewayError("turn-not-found", "The turn is no longer stored.", { turnId });
}

/** The error of a turn that did not complete, for a caller that waits for its reply. */
export function failureOf(
  { turnId, status, error }: Pick<Turn, "turnId" | "status" | "error">,
  replayed: boolean,
): GatewayError {
  return status === "cancelled"
    ? new GatewayError("turn-cancelled", undefined, { turnId, replayed })
    : new GatewayError(error?.name ?? "turn-failed", error?.detail, {
        turnId,
        replayed,
        ...(error?.name === "shutting-down" && { retryAfterMs: 1_000 }),
        ...(error?.budget && { budget: error.budget }),
      });
}

export function orderOf(parts: TurnParts, request: TurnRequest, agent: Agent, claim: TurnOrder["claim"]): TurnOrder {
  const { limits } = parts.settings();
  // The claim and the turn get the same time, so that a turn never starts before it was queued.
  const now = claim?.now ?? parts.clock.now();
  const turnId = request.delivery ? idLike("turn", request.delivery.deliveryId, now) : newId("turn", now);
  const order: TurnOrder = {
    now,
    turnId,
    messageId: idLike("msg", turnId, now),
    session: request.place,
    surface: request.surface,
    caller: request.caller,
    text: request.text,
    outside: request.outside ?? false,
    context: request.context,
    model: request.model,
    countedModel: parts.countedModels(agent, request.model),
    skillIds: request.skillIds ?? [],
    waited: isWaitedFor(request),
    idempotency: request.idempotency && { ...request.idempotency, expiresAt: now + IDEMPOTENCY_MS },
    delivery: request.delivery,
    announce: request.announce ?? (request.hops ? { channel: undefined, hops: request.hops } : undefined),
    limits: limits.store,
    recorder: limits.recorder,
    claim,
  };
  if (request.group) order.group = request.group;
  return order;
}
