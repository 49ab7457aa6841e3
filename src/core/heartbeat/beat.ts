import { GATEWAY_KEPT_ENTRIES } from "#core/gateway-stream.ts";
import { isHeld } from "#core/leases.ts";
import type { Journal } from "#core/sessions/journal.ts";
import { mainSessionOf } from "#core/sessions/sessions.ts";
import { isEnded, type Turns, type TurnWish } from "#core/turns/turns.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { InSlice } from "#kit/slices.ts";
import type { Events } from "#observe/events.ts";
import type { BeatClaim, Store, SystemEvent, Turn } from "#store/store.ts";
import { Ending } from "./beat-ending.ts";
import { hopsOfEvents, textOfEvents } from "./beat-text.ts";

/** What one turn is given at most; the bytes are those of texts and metadata. */
const BATCH = { limit: 100, bytes: 64 * 1024 };
/**
 * The first beat of so many begins gently: its first turn has few, each other up to twice as many, and between them it rests until so many were
 * handed over. What runs for the first time is slow, and all of it is compiled once it has run often: calls must not meet that at once.
 */
const MANY = 1_000;
const FIRST_OF_MANY = 10;
const GENTLE = { events: 4_000, restMs: 16 };
/** Events that were handed over so far. */
export type Warmth = { handed: number };
/** By this process, in all its beats: what has run often once stays compiled. */
const OWN_WARMTH: Warmth = { handed: 0 };
/** An event that so many turns failed on is dead. */
const MAX_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** Whoever held the beat before may still take some events, once, as it has not heard that it lost it: so many in a row may be. */
const LATE_TAKERS = 3;
/** What was read for the next turn while one ended is as it was for so long: later others may have taken of it. */
const FRESH_MS = 1_000;
/** Who waits for a turn's end is told of it; as nobody may be there to tell, it looks by itself so often. */
const LOOK_MS = 10_000;

export type BeatParts = {
  store: Store;
  turns: Pick<Turns, "start">;
  journal: Journal;
  clock: Clock;
  events: Events;
  inSlice: InSlice;
  /** Makes room in a full session; false when it could not. */
  makeRoom: (sessionId: string) => Promise<boolean>;
  /** The process's own without it. */
  warmth?: Warmth | undefined;
};

/** A beat that is held here, and what it came to so far. */
export class HeldBeat {
  readonly claim: BeatClaim;
  readonly began: number;
  events = 0;
  /** Of these, those that came back. */
  returned = 0;
  readonly turnIds: string[] = [];
  /** Nothing of what was queued when it began is left but what came back. */
  isDone = false;
  /** More than a turn takes has come since. */
  hasMore = false;
  /** Why the next turn cannot be started now. */
  delayedBy: string | undefined = undefined;
  readonly #stop = new AbortController();
  readonly #leave = new AbortController();

  constructor(claim: BeatClaim, began: number) {
    this.claim = claim;
    this.began = began;
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }
  get left(): AbortSignal {
    return this.#leave.signal;
  }

  /** It begins no other turn; it still waits for the one that runs. */
  stop(): void {
    this.#stop.abort();
  }
  /** It waits for nothing any more. */
  leave(): void {
    this.stop();
    this.#leave.abort();
  }
}

/**
 * Hands over what was queued when the beat began, the oldest first, one turn after another. What cannot be handed over now is tried
 * again with growing pauses, as long as the beat is held: an event that is left behind may wait for a beat that never comes.
 */
export const runBeat = async (parts: BeatParts, beat: HeldBeat): Promise<void> => {
  const { store, events, clock, inSlice, warmth = OWN_WARMTH } = parts;
  const { agent, through } = beat.claim;
  let after = 0;
  let tries = 0;
  let taken = 0;
  let hasCompacted = false;
  const isLarge = warmth.handed < GENTLE.events && store.agentCounts(agent).waitingEvents > MANY;
  // Its end and the next one's start share a commit; where several gateways claim, they need not reach the store in this order.
  const mayOverlap = store.durable && !store.shared;
  const wanted = (underWay: number) => {
    const limit = isLarge ? limitAfter(beat.events + underWay) : BATCH.limit;
    return { agent, after, through, ...BATCH, limit };
  };
  let ahead: Promise<SystemEvent[] | undefined> | undefined;
  // A turn whose end is on its way to the store, while the next one is.
  let before: Promise<void> | undefined;
  for (;;) {
    if (beat.stopped.aborted) return await before;
    try {
      // Read again after a failure: a start that seemed to fail may have been kept, and has its events then.
      const batch = (await ahead) ?? (await inSlice(() => store.readQueuedEvents(wanted(0))));
      ahead = undefined;
      const last = batch.at(-1);
      if (!last) {
        await before;
        beat.isDone = true;
        beat.hasMore = beat.events > 0 && (await isMoreThanATurn(parts, beat.claim));
        return;
      }
      const ending = new Ending();
      const starting = inSlice(() =>
        parts.turns.start({ ...wishOf(agent, batch), follow: (turn) => ending.listen(parts.journal, turn) }),
      );
      const next = mayOverlap ? readEarly(store, { ...wanted(batch.length), after: last.ordinal }) : undefined;
      const { turn, isEnding } = await starting;
      after = last.ordinal;
      tries = 0;
      taken = 0;
      beat.delayedBy = undefined;
      const overlaps = next !== undefined && isEnding === true;
      if (overlaps) ahead = next;
      else ahead = store.durable ? readEarly(store, wanted(batch.length)) : undefined;
      const readAt = clock.monotonic();
      const following = followBatch(parts, beat, batch, turn, ending);
      await before;
      before = overlaps ? following : undefined;
      if (!overlaps) {
        await following;
        if (clock.monotonic() - readAt > FRESH_MS) ahead = undefined;
      }
      warmth.handed += batch.length;
      if (isLarge && warmth.handed < GENTLE.events) await rest(clock, GENTLE.restMs, beat.stopped);
    } catch (error) {
      ahead = undefined;
      const reason = GatewayError.from(error).name;
      // The gateway stops, or the agent has left the configuration.
      if (reason === "shutting-down" || reason === "agent-not-found") return await before;
      if (reason === "internal" && !(await isHeld(store, beat.claim))) return await before;
      if (reason === "internal" && error instanceof GatewayError && ++taken <= LATE_TAKERS) continue;
      if (!MAY_PASS.has(reason)) throw error;
      if (reason === "session-full" && !hasCompacted) {
        hasCompacted = true;
        if (await parts.makeRoom(mainSessionOf(agent))) continue;
      }
      beat.delayedBy = reason;
      const delayMs = pauseOf(tries++);
      events.beatDelayed({ agent, reason, delayMs });
      await rest(clock, delayMs, beat.stopped);
    }
  }
};

const limitAfter = (events: number): number => Math.min(Math.max(events, FIRST_OF_MANY), BATCH.limit);

/** Whether more than a turn takes has come since the beat began. Not where it could not be read: the next one finds it. */
const isMoreThanATurn = async ({ store, inSlice }: BeatParts, { agent, through }: BeatClaim): Promise<boolean> => {
  const read = (after: number, limit: number) =>
    inSlice(() => store.readQueuedEvents({ agent, after, through: Number.MAX_SAFE_INTEGER, ...BATCH, limit }));
  try {
    const last = (await read(through, BATCH.limit)).at(-1);
    return last !== undefined && (await read(last.ordinal, 1)).length > 0;
  } catch {
    return false;
  }
};

/** What the next turn gets, read while this one begins or ends, in the same breath; undefined when it could not be read. */
const readEarly = (
  store: Store,
  wanted: Parameters<Store["readQueuedEvents"]>[0],
): Promise<SystemEvent[] | undefined> => Promise.resolve(store.readQueuedEvents(wanted)).catch(() => undefined);

/** Refusals that time, or somebody, puts right. */
const MAY_PASS: ReadonlySet<string> = new Set([
  "session-busy",
  "session-full",
  "session-conflict",
  "gateway-busy",
  "store-full",
  "store-unavailable",
]);

const pauseOf = (tries: number): number =>
  Math.round(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2));

const wishOf = (agent: string, batch: readonly SystemEvent[]): TurnWish => ({
  place: { sessionId: mainSessionOf(agent), agent, channel: "heartbeat", userId: "heartbeat" },
  surface: "heartbeat",
  caller: "heartbeat",
  text: textOfEvents(batch),
  outside: true,
  hops: hopsOfEvents(batch),
  events: {
    ids: batch.map(({ eventId }) => eventId),
    maxAttempts: MAX_ATTEMPTS,
    streamKeep: GATEWAY_KEPT_ENTRIES,
  },
});

/** Waits for the end of a batch's turn, and tells of events that it failed on. */
const followBatch = async (
  parts: BeatParts,
  beat: HeldBeat,
  batch: readonly SystemEvent[],
  turn: Turn,
  ending: Ending,
): Promise<void> => {
  const { turnId } = turn;
  beat.turnIds.push(turnId);
  beat.events += batch.length;
  const end = await endOf(parts, beat, turn, ending);
  ending.stop();
  if (end?.status === "completed" || (end && !isEnded(end))) return;
  try {
    const { store, inSlice } = parts;
    const events = await inSlice(() => Promise.all(batch.map(({ eventId }) => store.getEvent(eventId))));
    await inSlice(() => Promise.all(events.map((event) => event && tellReturned(parts, beat, event, turnId))));
  } catch (error) {
    parts.events.storeFailed({ operation: "getEvent", error });
    beat.returned++;
  }
};

/** How a turn ended, or is when the beat is left; undefined when it was erased. */
const endOf = async (
  { store, clock, events }: BeatParts,
  beat: HeldBeat,
  asked: Turn,
  ending: Ending,
): Promise<Pick<Turn, "status"> | undefined> => {
  let waitsFor = [beat.left, ending.told];
  for (;;) {
    await rest(clock, LOOK_MS, ...waitsFor);
    if (ending.status) return { status: ending.status };
    try {
      const turn = await store.getTurn(asked.turnId);
      if (!turn || isEnded(turn) || beat.left.aborted) return turn;
    } catch (error) {
      events.storeFailed({ operation: "getTurn", error });
      // Nobody waits any more, and a rest would be none.
      if (beat.left.aborted) return asked;
    }
    if (ending.told.aborted) waitsFor = [beat.left];
  }
};

const tellReturned = async (
  { store, clock, events }: BeatParts,
  beat: HeldBeat,
  { eventId, agent, status, attempts, deliveryId, reason = "it was not told why" }: SystemEvent,
  turnId: string,
): Promise<void> => {
  if (status === "dead") events.eventDead({ eventId, agent, attempts, turnId, reason });
  if (status !== "queued") return;
  beat.returned++;
  if (deliveryId === undefined) return;
  const detail = JSON.stringify({ turn_id: turnId, attempts, reason });
  await store.addDeliveryStep(deliveryId, { at: clock.now(), name: "event.returned", detail });
};

/** Resolves after `ms`, or when one of the signals aborts. */
export const rest = (clock: Clock, ms: number, ...signals: readonly AbortSignal[]): Promise<void> =>
  new Promise((resolve) => {
    const wake = () => {
      stop();
      for (const signal of signals) signal.removeEventListener("abort", wake);
      resolve();
    };
    const stop = clock.after(ms, wake);
    for (const signal of signals) {
      if (signal.aborted) return wake();
      signal.addEventListener("abort", wake);
    }
  });
