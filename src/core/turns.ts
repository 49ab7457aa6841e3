import type { Delivery, RecorderLimits, Store, StoreLimits, Surface, Turn, TurnOrder } from "#store/store.ts";
import { type Agents, checkModel } from "./agents.ts";
import type { Clock } from "./clock.ts";
import { GatewayError } from "./errors.ts";
import { newId } from "./ids.ts";
import { isTurnEnd, type Journal } from "./journal.ts";
import type { Runner } from "./runner.ts";
import type { SessionPlace } from "./sessions.ts";
import { checkSkills, type Skills } from "./skills.ts";

/** What every surface asks for when it starts work. */
export type TurnWish = {
  place: SessionPlace;
  surface: Surface;
  caller: string;
  text: string;
  /** The text came from outside: it is fenced when a prompt is built. */
  outside?: boolean;
  model?: string | undefined;
  skillIds?: readonly string[] | undefined;
  /** Somebody waits for the reply, so long at most. */
  waitMs?: number | undefined;
  /** Somebody reads the reply as it is written. */
  streamed?: boolean;
  idempotency?: { key: string; hash: string } | undefined;
  delivery?: Delivery | undefined;
  /** Aborts when the caller has gone. Asked for only when the wait lasts: a signal costs more than a short turn. */
  gone?: (() => AbortSignal) | undefined;
};

export type Limits = { store: StoreLimits; recorder: RecorderLimits };

const IDEMPOTENCY_MS = 24 * 3_600_000;
const CANCEL_WAIT_MS = 1_000;
/** A wait so short is not worth a look whether the caller is still there. */
const SHORT_WAIT_MS = 100;

export const createTurns = (parts: {
  store: Store;
  agents: Agents;
  skills: Skills;
  journal: Journal;
  runner: Runner;
  clock: Clock;
  limits: () => Limits;
  /** Throws when the gateway takes no new work: it drains, or memory is short. */
  admit: () => void;
}) => {
  const { store, agents, skills, journal, runner, clock, limits, admit } = parts;

  /** Resolves with the turn when it has ended, or as it is after `ms`, or when the caller has gone. */
  const waitForEnd = (turn: Turn, ms: number, gone: TurnWish["gone"]) => {
    let stop = () => {};
    const ended = new Promise<Turn | undefined>((resolve, reject) => {
      const leave = () => resolve(undefined);
      let signal: AbortSignal | undefined;
      const listen = () => {
        signal = gone?.();
        if (signal?.aborted || ms <= SHORT_WAIT_MS) leave();
        signal?.addEventListener("abort", leave, { once: true });
        stopTimer = clock.after(ms - SHORT_WAIT_MS, leave);
      };
      let stopTimer = clock.after(Math.min(ms, SHORT_WAIT_MS), listen);
      const stopEnd = journal.onTurnEnd(turn.turnId, (entry) => {
        if (entry) resolve(withEnd(turn, entry));
        else reject(erased(turn.turnId));
      });
      stop = () => {
        stopTimer();
        stopEnd();
        signal?.removeEventListener("abort", leave);
      };
    });
    // A turn that is erased before anybody awaits this is told by the read that comes first.
    ended.catch(() => {});
    return { ended, stop };
  };

  const read = async (turnId: string): Promise<Turn> => {
    const turn = await store.getTurn(turnId);
    if (!turn) throw new GatewayError("turn-not-found", `No turn has the id ${turnId}.`);
    return turn;
  };

  /** The turn once it has ended, or as it is after `ms`. */
  const wait = async (turn: Turn, ms: number, gone?: TurnWish["gone"]): Promise<Turn> => {
    const { ended, stop } = waitForEnd(turn, ms, gone);
    try {
      const now = await read(turn.turnId);
      return isEnded(now) ? now : ((await ended) ?? (await read(turn.turnId)));
    } finally {
      stop();
    }
  };

  return {
    /**
     * The one way all work begins. Refuses what cannot be run, then stores message, turn, idempotency key and delivery in one
     * transaction; when it resolves, the work is kept. With `waitMs` it resolves when the turn has ended, or after that time.
     */
    async start(wish: TurnWish): Promise<{ turn: Turn; replayed: boolean }> {
      admit();
      const agent = agents.get(wish.place.agent);
      checkModel(agent, wish.model);
      if (wish.skillIds?.length) checkSkills(skills, agent, wish.skillIds);
      const slot = runner.reserve(agent.name);
      const order = orderOf(wish, clock.now(), limits(), slot?.request);
      let started: Awaited<ReturnType<Store["startTurn"]>> | undefined;
      try {
        started = await store.startTurn(order);
      } finally {
        if (!started?.claimed) slot?.free();
      }
      const { turn, replayed, claimed } = started;
      const waiting = wish.waitMs === undefined || replayed ? undefined : waitForEnd(turn, wish.waitMs, wish.gone);
      if (claimed) runner.begin(claimed);
      if (replayed && wish.waitMs !== undefined) return { turn: await wait(turn, wish.waitMs, wish.gone), replayed };
      if (!waiting) return { turn, replayed };
      try {
        // Not claimed at once, it may have been claimed and ended before this line.
        const ended = claimed ? undefined : await read(turn.turnId);
        return {
          turn: ended && isEnded(ended) ? ended : ((await waiting.ended) ?? (await read(turn.turnId))),
          replayed,
        };
      } finally {
        waiting.stop();
      }
    },

    get: read,
    wait,

    /** Cancels the turn; answers it as it is when it has ended, or after a second. */
    async cancel(turnId: string): Promise<Turn> {
      const turn = await store.cancelTurn(turnId, clock.now());
      return turn.status === "running" ? await wait(turn, CANCEL_WAIT_MS) : turn;
    },
  };
};

export type Turns = ReturnType<typeof createTurns>;

export const isEnded = ({ status }: Turn): boolean => status !== "queued" && status !== "running";

export const erased = (turnId: string): GatewayError =>
  new GatewayError("turn-not-found", "The turn was deleted with its session.", { turnId });

/** What a turn that did not complete is to somebody who waits for its reply. */
export const failureOf = ({ turnId, status, error }: Turn, replayed: boolean): GatewayError =>
  status === "cancelled"
    ? new GatewayError("turn-cancelled", undefined, { turnId, replayed })
    : new GatewayError(error?.name ?? "turn-failed", error?.detail, {
        turnId,
        replayed,
        ...(error?.name === "shutting-down" && { retryAfterMs: 1_000 }),
      });

const withEnd = (turn: Turn, entry: Parameters<typeof isTurnEnd>[0]): Turn => {
  if (!isTurnEnd(entry)) return turn;
  const ended = { ...turn, endedAt: entry.at, usage: entry.usage };
  if (entry.name === "turn.completed") return { ...ended, status: "completed", reply: entry.reply };
  if (entry.name === "turn.cancelled") return { ...ended, status: "cancelled", reply: entry.reply || undefined };
  return { ...ended, status: "failed", error: entry.error };
};

const orderOf = (wish: TurnWish, now: number, limits: Limits, claim: TurnOrder["claim"]): TurnOrder => ({
  now,
  turnId: newId("turn", now),
  messageId: newId("msg", now),
  session: wish.place,
  surface: wish.surface,
  caller: wish.caller,
  text: wish.text,
  outside: wish.outside ?? false,
  model: wish.model,
  skillIds: wish.skillIds ?? [],
  waited: wish.waitMs !== undefined || wish.streamed === true,
  idempotency: wish.idempotency && { ...wish.idempotency, expiresAt: now + IDEMPOTENCY_MS },
  delivery: wish.delivery,
  limits: limits.store,
  recorder: limits.recorder,
  claim,
});
