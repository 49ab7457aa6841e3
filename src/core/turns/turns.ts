import { setImmediate as breathe } from "node:timers/promises";
import { type Agents, checkModel, countedModel, requireAwake } from "#core/agents/agents.ts";
import type { Journal } from "#core/sessions/journal.ts";
import type { SessionPlace } from "#core/sessions/sessions.ts";
import { checkSkills, type Skills } from "#core/skills/skills.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { idLike, newId } from "#kit/ids.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import type {
  Delivery,
  Page,
  RecorderLimits,
  Store,
  StoreLimits,
  Surface,
  Turn,
  TurnOrder,
  TurnQuery,
  TurnStart,
} from "#store/store.ts";
import type { Runner } from "./runner.ts";
import { createTurnWaits } from "./turn-waits.ts";

/** What every surface asks for when it starts work. */
export type TurnWish = {
  place: SessionPlace;
  surface: Surface;
  caller: string;
  text: string;
  /** The text came from outside: it is fenced when a prompt is built. */
  outside?: boolean;
  /** What comes beside the text, as JSON. */
  context?: string | undefined;
  /** The system events that it handles. */
  events?: TurnOrder["events"];
  /** The channel that its reply goes to when it completes. */
  announce?: TurnOrder["announce"];
  /** Through how many announcements and agents came what starts it. */
  hops?: number;
  model?: string | undefined;
  skillIds?: readonly string[] | undefined;
  /** Somebody waits for the reply, so long at most. */
  waitMs?: number | undefined;
  /** Somebody reads the reply as it is written. */
  streamed?: boolean;
  idempotency?: { key: string; hash: string } | undefined;
  delivery?: Delivery | undefined;
  /** Told of the turn as soon as it is kept, before it can end; with the `seq` of its reply where that is begun already. */
  follow?: ((turn: Turn, replySeq: number | undefined) => void) | undefined;
  /** Aborts when the caller has gone. Asked for only when the wait lasts: a signal costs more than a short turn. */
  gone?: (() => AbortSignal) | undefined;
};

/** `isEnding`: it was over as soon as it had begun, and its end is on the way to the store. */
export type Started = { turn: Turn; replayed: boolean; isEnding?: boolean };

type Slot = ReturnType<Runner["reserve"]>;

export type Limits = { store: StoreLimits; recorder: RecorderLimits };

export const IDEMPOTENCY_MS = 24 * 3_600_000;
const CANCEL_WAIT_MS = 1_000;

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

  const waits = createTurnWaits({ journal, clock });

  const read = async (turnId: string): Promise<Turn> => {
    const turn = await store.getTurn(turnId);
    if (!turn) throw new GatewayError("turn-not-found", `No turn has the id ${turnId}.`);
    return turn;
  };

  /** The turn once it has ended, or as it is after `ms`. */
  const settle = async (turn: Turn, wait: ReturnType<typeof waits.open>): Promise<Turn> => {
    try {
      const now = await read(turn.turnId);
      if (isEnded(now)) return now;
      const end = await wait.ended;
      if (end === "erased") throw erased(turn.turnId);
      return end === "over" ? await read(turn.turnId) : end;
    } finally {
      waits.close(wait);
    }
  };
  const wait = (turn: Turn, ms: number, gone?: TurnWish["gone"]) => settle(turn, waits.open(turn, ms, gone));

  /** A repeat is answered as the first was, whatever has become of the agent, its skills and the room for new work. */
  const startOnce = async (wish: TurnWish): Promise<Started> => (await findReplay(wish)) ?? (await startNew(wish));

  /** The turn that the key of this wish has started before, if it has. */
  const findReplay = async ({
    idempotency,
    waitMs,
    gone,
    follow,
  }: TurnWish): Promise<{ turn: Turn; replayed: true } | undefined> => {
    const turn = idempotency && (await store.findReplay(idempotency, clock.now()));
    if (turn) follow?.(turn, undefined);
    return turn && { turn: waitMs === undefined ? turn : await wait(turn, waitMs, gone), replayed: true };
  };

  /** The same for a turn that was claimed before anybody waited for it. */
  const startedAfter = (turn: Turn, wait: ReturnType<typeof waits.open>, replayed: boolean): Promise<Started> =>
    wait.ended.then((end) => {
      waits.close(wait);
      if (end === "erased") throw erased(turn.turnId);
      return end === "over" ? read(turn.turnId).then((now) => ({ turn: now, replayed })) : { turn: end, replayed };
    });

  const startNew = (wish: TurnWish): Started | Promise<Started> => {
    admit();
    const agent = agents.get(wish.place.agent);
    checkModel(agent, wish.model);
    if (wish.skillIds?.length) checkSkills(skills, agent, wish.skillIds);
    if (isWaitedFor(wish)) requireAwake(agent, wish.model);
    const slot = runner.reserve(agent.name);
    // One moment for both: a turn never begins before it was queued.
    const now = slot?.request.now ?? clock.now();
    const order = orderOf(wish, countedModel(agent, wish.model), now, limits(), slot?.request);
    let started: ReturnType<Store["startTurn"]>;
    try {
      started = store.startTurn(order);
    } catch (error) {
      slot?.free();
      throw error;
    }
    return started instanceof Promise ? beginLater(wish, started, slot) : begin(wish, started, slot);
  };

  const beginLater = async (wish: TurnWish, starting: Promise<TurnStart>, slot: Slot): Promise<Started> => {
    let started: TurnStart;
    try {
      started = await starting;
    } catch (error) {
      slot?.free();
      throw error;
    }
    return begin(wish, started, slot);
  };

  const begin = (wish: TurnWish, { turn, replayed, claimed }: TurnStart, slot: Slot): Started | Promise<Started> => {
    if (!claimed) slot?.free();
    wish.follow?.(turn, claimed?.replySeq);
    // Whoever waits has to listen before the turn runs.
    const opened = wish.waitMs === undefined ? undefined : waits.open(turn, wish.waitMs, wish.gone);
    const isEnding = claimed !== undefined && runner.begin(claimed);
    if (!opened) return { turn, replayed, isEnding };
    if (claimed) return startedAfter(turn, opened, replayed);
    return settle(turn, opened).then((ended) => ({ turn: ended, replayed }));
  };

  const startNow = (wish: TurnWish): Started | Promise<Started> =>
    wish.idempotency ? startOnce(wish) : startNew(wish);

  return {
    /**
     * The one way all work begins. Refuses what cannot be run, then stores message, turn, idempotency key and delivery in one
     * transaction; when it answers, the work is kept. With `waitMs` it answers when the turn has ended, or after that time. Where the
     * store needs no waiting and nobody waits for the reply, the answer is no promise.
     */
    start(wish: TurnWish): Started | Promise<Started> {
      // To make a large text took a while, and to keep it will: others are heard in between. Only calls of REST have no order to keep.
      if (wish.text.length > IN_STRETCHES_FROM && wish.surface === "rest") return breathe().then(() => startNow(wish));
      return startNow(wish);
    },

    get: read,

    /** Without their replies, newest first. */
    list: (query: TurnQuery): Promise<Page<Turn>> => store.listTurns(query),

    wait,

    /** Cancels the turn; answers it as it is when it has ended, or after a second. */
    async cancel(turnId: string): Promise<Turn> {
      const turn = await store.cancelTurn(turnId, clock.now());
      return turn.status === "running" ? await wait(turn, CANCEL_WAIT_MS) : turn;
    },
  };
};

const isWaitedFor = ({ waitMs, streamed }: TurnWish): boolean => waitMs !== undefined || streamed === true;

export type Turns = ReturnType<typeof createTurns>;

export const isEnded = ({ status }: Pick<Turn, "status">): boolean => status !== "queued" && status !== "running";

export const erased = (turnId: string): GatewayError =>
  new GatewayError("turn-not-found", "The turn is not kept any more.", { turnId });

/** What a turn that did not complete is to somebody who waits for its reply. */
export const failureOf = (
  { turnId, status, error }: Pick<Turn, "turnId" | "status" | "error">,
  replayed: boolean,
): GatewayError =>
  status === "cancelled"
    ? new GatewayError("turn-cancelled", undefined, { turnId, replayed })
    : new GatewayError(error?.name ?? "turn-failed", error?.detail, {
        turnId,
        replayed,
        ...(error?.name === "shutting-down" && { retryAfterMs: 1_000 }),
      });

const orderOf = (
  wish: TurnWish,
  counted: string,
  now: number,
  limits: Limits,
  claim: TurnOrder["claim"],
): TurnOrder => {
  const turnId = wish.delivery ? idLike("turn", wish.delivery.deliveryId, now) : newId("turn", now);
  return {
    now,
    turnId,
    messageId: idLike("msg", turnId, now),
    session: wish.place,
    surface: wish.surface,
    caller: wish.caller,
    text: wish.text,
    outside: wish.outside ?? false,
    context: wish.context,
    model: wish.model,
    countedModel: counted,
    skillIds: wish.skillIds ?? [],
    waited: isWaitedFor(wish),
    idempotency: wish.idempotency && { ...wish.idempotency, expiresAt: now + IDEMPOTENCY_MS },
    delivery: wish.delivery,
    events: wish.events,
    announce: wish.announce ?? (wish.hops ? { channel: undefined, hops: wish.hops } : undefined),
    limits: limits.store,
    recorder: limits.recorder,
    claim,
  };
};
