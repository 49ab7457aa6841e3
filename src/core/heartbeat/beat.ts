import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import type { CoreParts } from "#core/parts.ts";
import { mainSessionOf } from "#core/sessions/sessions.ts";
import { isEnded, type TurnRequest, type Turns } from "#core/turns/turns.ts";
import { leaseMsOf } from "#core/worker.ts";
import { sleep } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { HOPS_HEADER, hopsOf, MAX_HOPS } from "#kit/hops.ts";
import type { BeatClaim, SystemEvent, Turn } from "#store/store.ts";

/** The most events of one turn, and the most bytes of their texts and metadata. */
export const BATCH = { limit: 100, bytes: 64 * 1024 };
/** An event is dead after this number of failed turns. */
const MAX_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** A gateway that lost its beat may start one more turn before it detects the loss. The new owner retries after this number of such conflicts in a row. */
const MOST_LATE_BATCHES = 3;
/** The interval at which a running turn is polled, because a notification of its end may be lost. */
const POLL_MS = 10_000;
const RETRY_MS = 1_000;

export type BeatParts = CoreParts & {
  turns: Turns;
  /** Makes room in a full session. Returns false if that failed. */
  makeRoom: (sessionId: string) => Promise<boolean>;
};

/** A beat that this gateway runs, and its results so far. */
export type HeldBeat = {
  readonly claim: BeatClaim;
  readonly began: number;
  /** When aborted, the beat starts no more turns, but still waits for its running turn. */
  readonly stop: AbortController;
  /** When aborted, the beat ends without waiting for its running turn. */
  readonly leave: AbortController;
  events: number;
  /** The number of these events that were queued again, because their turn failed. */
  returned: number;
  readonly turnIds: string[];
  /** True once every event that was queued when the beat started has been given to a turn. */
  isDone: boolean;
  /** The reason why the next turn cannot be started now. */
  delayedBy: string | undefined;
  /** The ordinal of the last event that was given to a turn. */
  after: number;
  /** The number of delayed starts since then. */
  tries: number;
  /** The number of starts since then that failed because another gateway took the events. */
  lateBatches: number;
  /** True once this beat has compacted the session to make room. */
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
    lateBatches: 0,
    hasCompacted: false,
  };
}

export function leaveBeat({ stop, leave }: HeldBeat): void {
  stop.abort();
  leave.abort();
}

/**
 * Starts turns with the events that were queued when the beat started: the oldest first, one turn after another. If a turn cannot be started now,
 * retries with growing pauses until the beat is stopped, because an agent without an interval may have no later beat.
 */
export async function runBeat(parts: BeatParts, beat: HeldBeat): Promise<void> {
  const { store, inBackground } = parts;
  const { agent, through } = beat.claim;
  while (!beat.stop.signal.aborted) {
    try {
      // Read in each iteration: a start that failed may have been stored, and then its turn has the events.
      const batch = await inBackground(() => store.readQueuedEvents({ agent, after: beat.after, through, ...BATCH }));
      const last = batch.at(-1);
      if (!last) {
        beat.isDone = true;
        return;
      }
      const { turn } = await inBackground(() => parts.turns.start(requestOf(agent, batch)));
      Object.assign(beat, { after: last.ordinal, tries: 0, lateBatches: 0, delayedBy: undefined });
      await followBatch(parts, beat, batch, turn);
    } catch (error) {
      if (!(await mayRetry(parts, beat, error))) return;
    }
  }
}

/** Waits before a retry. Returns false if the beat is over, and throws an error that a retry cannot solve. */
async function mayRetry(parts: BeatParts, beat: HeldBeat, error: unknown): Promise<boolean> {
  const { store, clock, events } = parts;
  const { agent } = beat.claim;
  const reason = GatewayError.from(error).name;
  // The gateway stops, or the agent was removed from the configuration.
  if (reason === "shutting-down" || reason === "agent-not-found") return false;
  if (reason === "internal") {
    // If this gateway was suspended for a long time, another gateway may have claimed the beat and its events.
    if (!(await store.extendBeat(beat.claim, leaseMsOf(store)).catch(() => true))) return false;
    if (error instanceof GatewayError && ++beat.lateBatches <= MOST_LATE_BATCHES) return true;
  }
  if (!RETRIED.has(reason)) throw error;
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

/** Errors that are worth a retry: their cause is temporary, or an operator can remove it. */
const RETRIED: ReadonlySet<string> = new Set([
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

function requestOf(agent: string, batch: readonly SystemEvent[]): TurnRequest {
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
      streamKeep: GATEWAY_STORED_ENTRIES,
    },
  };
}

/** Waits for the end of a batch's turn, and reports the events that were queued again or are dead. */
async function followBatch(parts: BeatParts, beat: HeldBeat, batch: readonly SystemEvent[], turn: Turn): Promise<void> {
  const { turnId } = turn;
  beat.turnIds.push(turnId);
  beat.events += batch.length;
  const end = await endOf(parts, beat, turn);
  if (end?.status === "completed" || (end && !isEnded(end))) return;
  try {
    const { store, inBackground } = parts;
    const events = await inBackground(() => Promise.all(batch.map(({ eventId }) => store.getEvent(eventId))));
    for (const event of events) if (event) reportReturned(parts, beat, event, turnId);
  } catch (error) {
    parts.events.storeFailed({ operation: "getEvent", error });
    beat.returned++;
  }
}

/** The ended turn, or its state when `beat.leave` is aborted. Undefined if it was deleted. */
async function endOf({ turns, clock, events }: BeatParts, beat: HeldBeat, turn: Turn): Promise<Turn | undefined> {
  for (;;) {
    try {
      const now = await turns.wait(turn, POLL_MS, () => beat.leave.signal);
      if (isEnded(now) || beat.leave.signal.aborted) return now;
    } catch (error) {
      if (GatewayError.from(error).name === "turn-not-found") return undefined;
      events.storeFailed({ operation: "getTurn", error });
      if (beat.leave.signal.aborted) return turn;
      await sleep(clock, RETRY_MS, beat.leave.signal);
    }
  }
}

function reportReturned(
  { events }: BeatParts,
  beat: HeldBeat,
  { eventId, agent, status, attempts, reason = "no reason was given" }: SystemEvent,
  turnId: string,
): void {
  if (status === "dead") events.eventDead({ eventId, agent, attempts, turnId, reason });
  else if (status === "queued") beat.returned++;
}

/** The message to the agent: each event with its id, time, sender, text and metadata. */
function textOfEvents(events: readonly SystemEvent[]): string {
  let text = events.length === 1 ? "1 system event" : `${events.length} system events, the oldest first`;
  let n = 0;
  for (const event of events) {
    text += `\n\n${++n}. ${headOf(event)}\n${event.text}`;
    if (event.metadata !== undefined) text += `\nmetadata: ${event.metadata}`;
  }
  return text;
}

/** The largest number of hops among the events, limited to `MAX_HOPS - 1`: a larger number can only come from a sender's metadata. */
function hopsOfEvents(events: readonly SystemEvent[]): number {
  let most = 0;
  for (const { metadata } of events) {
    if (!metadata?.includes(HOPS_HEADER)) continue;
    const { [HOPS_HEADER]: hops } = JSON.parse(metadata) as Record<string, unknown>;
    if (hops !== undefined) most = Math.max(most, hopsOf(String(hops)));
  }
  return Math.min(most, MAX_HOPS - 1);
}

function headOf({ eventId, createdAt, caller, attempts }: SystemEvent): string {
  const tried = attempts === 0 ? "" : `, tried ${attempts} ${attempts === 1 ? "time" : "times"} before`;
  return `${eventId}, ${new Date(createdAt).toISOString()}, from ${caller}${tried}`;
}
