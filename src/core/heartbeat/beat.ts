import { GATEWAY_KEPT_ENTRIES } from "#core/gateway-stream.ts";
import type { CoreParts } from "#core/parts.ts";
import { mainSessionOf } from "#core/sessions/sessions.ts";
import { isEnded, type TurnRequest, type Turns } from "#core/turns/turns.ts";
import { leaseMsOf } from "#core/worker.ts";
import { sleep } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { HOPS_HEADER, hopsOf, MAX_HOPS } from "#kit/hops.ts";
import type { BeatClaim, SystemEvent, Turn } from "#store/store.ts";

/** The most that one turn is given; the bytes are those of texts and metadata. */
export const BATCH = { limit: 100, bytes: 64 * 1024 };
/** An event that so many turns failed on is dead. */
const MAX_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** The most gateways in a row that lost a beat and still take some events, once, before they hear of the loss. */
const LATE_TAKERS = 3;
/** A turn's end may come to pass where nobody is there to tell of it: it is looked for so often. */
const LOOK_MS = 10_000;
const RETRY_MS = 1_000;

export type BeatParts = CoreParts & {
  turns: Turns;
  /** Makes room in a full session; false when it could not. */
  makeRoom: (sessionId: string) => Promise<boolean>;
};

/** A beat that is held here, and its results so far. */
export type HeldBeat = {
  readonly claim: BeatClaim;
  readonly began: number;
  /** Aborted, it begins no other turn; it still waits for the one that runs. */
  readonly stop: AbortController;
  /** Aborted, it waits for nothing any more. */
  readonly leave: AbortController;
  events: number;
  /** The number of these events that came back. */
  returned: number;
  readonly turnIds: string[];
  /** No event that was queued when it began is left, except those that came back. */
  isDone: boolean;
  /** Why the next turn cannot be started now. */
  delayedBy: string | undefined;
  /** The last event that was handed over, and the failures since then. */
  after: number;
  tries: number;
  lateTakers: number;
  hasCompacted: boolean;
};

export function holdBeat(claim: BeatClaim, began: number): HeldBeat {
  return {
    claim,
    began,
    stop: new AbortController(),
    leave: new AbortController(),
    events: 0,
    returned: 0,
    turnIds: [],
    isDone: false,
    delayedBy: undefined,
    after: 0,
    tries: 0,
    lateTakers: 0,
    hasCompacted: false,
  };
}

export function leaveBeat({ stop, leave }: HeldBeat): void {
  stop.abort();
  leave.abort();
}

/**
 * Hands over the events that were queued when the beat began, the oldest first, one turn after another. An event that cannot be
 * handed over now is tried again with growing pauses while this beat lasts. Left behind, it may wait for a beat that never comes.
 */
export async function runBeat(parts: BeatParts, beat: HeldBeat): Promise<void> {
  const { store, inBackground } = parts;
  const { agent, through } = beat.claim;
  while (!beat.stop.signal.aborted) {
    try {
      // Read again after a failure: a start that seemed to fail may have been kept, and has its events then.
      const batch = await inBackground(() => store.readQueuedEvents({ agent, after: beat.after, through, ...BATCH }));
      const last = batch.at(-1);
      if (!last) {
        beat.isDone = true;
        return;
      }
      const { turn } = await inBackground(() => parts.turns.start(wishOf(agent, batch)));
      Object.assign(beat, { after: last.ordinal, tries: 0, lateTakers: 0, delayedBy: undefined });
      await followBatch(parts, beat, batch, turn);
    } catch (error) {
      if (!(await mayGoOn(parts, beat, error))) return;
    }
  }
}

/** Waits where time may put right what failed; false where the beat is over. Throws what nothing puts right. */
async function mayGoOn(parts: BeatParts, beat: HeldBeat, error: unknown): Promise<boolean> {
  const { store, clock, events } = parts;
  const { agent } = beat.claim;
  const reason = GatewayError.from(error).name;
  // The gateway stops, or the agent has left the configuration.
  if (reason === "shutting-down" || reason === "agent-not-found") return false;
  if (reason === "internal") {
    // A gateway that stood still for long finds its beat with another, and its events taken.
    if (!(await store.extendBeat(beat.claim, leaseMsOf(store)).catch(() => true))) return false;
    if (error instanceof GatewayError && ++beat.lateTakers <= LATE_TAKERS) return true;
  }
  if (!MAY_PASS.has(reason)) throw error;
  if (reason === "session-full" && !beat.hasCompacted) {
    beat.hasCompacted = true;
    if (await parts.makeRoom(mainSessionOf(agent))) return true;
  }
  beat.delayedBy = reason;
  const delayMs = pauseOf(beat.tries++);
  events.beatDelayed({ agent, reason, delayMs });
  await sleep(clock, delayMs, beat.stop.signal);
  return true;
}

/** Refusals that time, or somebody, puts right. */
const MAY_PASS: ReadonlySet<string> = new Set([
  "session-busy",
  "session-full",
  "session-conflict",
  "gateway-busy",
  "store-full",
  "store-unavailable",
]);

function pauseOf(tries: number): number {
  return Math.round(Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2));
}

function wishOf(agent: string, batch: readonly SystemEvent[]): TurnRequest {
  return {
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
  };
}

/** Waits for the end of a batch's turn, and tells of events that it failed on. */
async function followBatch(parts: BeatParts, beat: HeldBeat, batch: readonly SystemEvent[], turn: Turn): Promise<void> {
  const { turnId } = turn;
  beat.turnIds.push(turnId);
  beat.events += batch.length;
  const end = await endOf(parts, beat, turn);
  if (end?.status === "completed" || (end && !isEnded(end))) return;
  try {
    const { store, inBackground } = parts;
    const events = await inBackground(() => Promise.all(batch.map(({ eventId }) => store.getEvent(eventId))));
    await inBackground(() => Promise.all(events.map((event) => event && tellReturned(parts, beat, event, turnId))));
  } catch (error) {
    parts.events.storeFailed({ operation: "getEvent", error });
    beat.returned++;
  }
}

/** The turn as it ended, or as it is when the beat is left; undefined when it was erased. */
async function endOf({ turns, clock, events }: BeatParts, beat: HeldBeat, turn: Turn): Promise<Turn | undefined> {
  for (;;) {
    try {
      const now = await turns.wait(turn, LOOK_MS, () => beat.leave.signal);
      if (isEnded(now) || beat.leave.signal.aborted) return now;
    } catch (error) {
      if (GatewayError.from(error).name === "turn-not-found") return undefined;
      events.storeFailed({ operation: "getTurn", error });
      if (beat.leave.signal.aborted) return turn;
      await sleep(clock, RETRY_MS, beat.leave.signal);
    }
  }
}

async function tellReturned(
  { store, clock, events }: BeatParts,
  beat: HeldBeat,
  { eventId, agent, status, attempts, deliveryId, reason = "it was not told why" }: SystemEvent,
  turnId: string,
): Promise<void> {
  if (status === "dead") events.eventDead({ eventId, agent, attempts, turnId, reason });
  if (status !== "queued") return;
  beat.returned++;
  if (deliveryId === undefined) return;
  const detail = JSON.stringify({ turn_id: turnId, attempts, reason });
  await store.addDeliveryStep(deliveryId, { at: clock.now(), name: "event.returned", detail });
}

/** The text of one turn's events for the agent: each event with its id, time, sender, text as it came, and metadata. */
function textOfEvents(events: readonly SystemEvent[]): string {
  let text = events.length === 1 ? "1 system event" : `${events.length} system events, the oldest first`;
  let n = 0;
  for (const event of events) {
    text += `\n\n${++n}. ${headOf(event)}\n${event.text}`;
    if (event.metadata !== undefined) text += `\nmetadata: ${event.metadata}`;
  }
  return text;
}

/** The most hops of any of the events. No event with `MAX_HOPS` is taken, so a larger number is cut to the one below. */
function hopsOfEvents(events: readonly SystemEvent[]): number {
  let most = 0;
  for (const { metadata } of events) {
    if (!metadata?.includes(HOPS_HEADER)) continue;
    const { [HOPS_HEADER]: said } = JSON.parse(metadata) as Record<string, unknown>;
    if (said !== undefined) most = Math.max(most, hopsOf(String(said)));
  }
  return Math.min(most, MAX_HOPS - 1);
}

function headOf({ eventId, createdAt, caller, attempts }: SystemEvent): string {
  const tried = attempts === 0 ? "" : `, tried ${attempts} ${attempts === 1 ? "time" : "times"} before`;
  return `${eventId}, ${new Date(createdAt).toISOString()}, from ${caller}${tried}`;
}
