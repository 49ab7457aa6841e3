import { hopsInMetadata } from "#kit/hops.ts";
import type { BeatOrder, BeatStep, BudgetRefusal, SystemEvent } from "#store/store.ts";
import { endRun, findBeat, isDue, putBeat } from "./beats.ts";
import { findSpent } from "./budget-turns.ts";
import { addDeliveryStep } from "./deliveries.ts";
import { findWaiting } from "./events.ts";
import type { BeatRecord, BeatRun, Records, Rule } from "./records.ts";
import { startTurnWith } from "./turns.ts";

/** The fields of an order that are the same for each beat's turn. */
const WITHOUT = { outside: true, context: undefined, delivery: undefined, idempotency: undefined };

export const startBeat: Rule<"startBeat"> = (records, order) => {
  const { agent } = order.turn.session;
  const beat = findBeat(records, agent);
  if (!isDue(records, beat)) return { outcome: "not-due" };
  const run = beat.run ?? newRun(records);
  const events = findWaiting(records, { agent, after: run.after, through: run.through, ...order.batch });
  const dead = run.dead.flatMap((eventId) => records.events.find(eventId) ?? []);
  const last = events.at(-1);
  if (!last) {
    // A beat that finds no events answers the request as well.
    if (beat.isAsked && !beat.run) putBeat(records, { ...beat, isAsked: false });
    return endWithoutMore(records, order, run, dead);
  }
  const spent = findSpent(records, { agent, caller: order.turn.caller, surface: order.turn.surface });
  if (spent) return delayBeat(records, order, beat, events, spent);
  const { turnId } = order.turn;
  const { maxAttempts } = order.batch;
  const ids = events.map(({ eventId }) => eventId);
  const hops = Math.max(0, ...events.map(({ metadata }) => hopsInMetadata(metadata)));
  const announce = hops > 0 ? { channel: undefined, hops } : undefined;
  const task = { kind: "beat", ids, maxAttempts, streamKeep: order.streamKeep } as const;
  const turn = { ...order.turn, ...WITHOUT, text: textOfEvents(events), announce };
  const started = startTurnWith(records, turn, task);
  records.agents.count(agent, { waitingEvents: -events.length });
  putBeat(records, {
    agent,
    dueAt: undefined,
    nextAt: beat.nextAt,
    isAsked: beat.run !== undefined && beat.isAsked,
    run: {
      ...run,
      before: run.after,
      after: last.ordinal,
      events: run.events + events.length,
      turnIds: [...run.turnIds, turnId],
      openTurnId: turnId,
      dead: [],
    },
  });
  return { outcome: "started", started, dead };
};

/**
 * Ends a beat of which a budget is spent: its events wait for the next one, which is planned as usual but not later than the end of the budget's window. The
 * timelines of the events report this once in a window.
 */
function delayBeat(
  records: Records,
  { turn, intervalMs, returnedDelayMs, streamKeep }: BeatOrder,
  { run, ...beat }: BeatRecord,
  events: readonly SystemEvent[],
  { budget, resetsAt }: BudgetRefusal,
): BeatStep {
  const { now, time } = records.moment;
  const delayMs = Math.min(intervalMs ?? returnedDelayMs, resetsAt - now);
  const dead = (run?.dead ?? []).flatMap((eventId) => records.events.find(eventId) ?? []);
  if (run) endRun(records, beat.agent, run, { now: turn.now, delayMs, streamKeep });
  // A request for it is answered: else no later request would have an effect.
  const delayed = { isAsked: false, dueAt: time + delayMs, delayedUntil: resetsAt };
  putBeat(records, { ...findBeat(records, beat.agent), ...delayed });
  const detail = JSON.stringify({ budget, resets_at: new Date(resetsAt).toISOString() });
  for (const { deliveryId } of beat.delayedUntil === resetsAt ? [] : events)
    if (deliveryId !== undefined) addDeliveryStep(records, deliveryId, { at: turn.now, name: "event.delayed", detail });
  const ms = run ? Math.round(time - run.began) : 0;
  return {
    outcome: "ended",
    events: run?.events ?? 0,
    turns: run?.turnIds.length ?? 0,
    returned: run?.returned ?? 0,
    ms,
    dead,
  };
}

/** A new beat. It takes the events that are queued now. */
function newRun(records: Records): BeatRun {
  return {
    began: records.moment.time,
    through: records.next("event"),
    before: 0,
    after: 0,
    events: 0,
    turnIds: [],
    returned: 0,
    openTurnId: undefined,
    dead: [],
    isLast: false,
  };
}

function endWithoutMore(records: Records, order: BeatOrder, run: BeatRun, dead: readonly SystemEvent[]): BeatStep {
  const { turn, intervalMs, returnedDelayMs, waitingEvents, batch, streamKeep } = order;
  const { events, turnIds, returned, began } = run;
  // An early beat causes no additional calls to the backend: full batches need the same number of turns now or later.
  const hasMore = events > 0 && returned === 0 && intervalMs !== undefined && waitingEvents > batch.limit;
  const delayMs = hasMore ? 0 : (intervalMs ?? (returned > 0 ? returnedDelayMs : undefined));
  endRun(records, turn.session.agent, run, { now: turn.now, delayMs, streamKeep });
  const ms = Math.round(records.moment.time - began);
  return { outcome: "ended", events, turns: turnIds.length, returned, ms, dead };
}

/** The message to the agent: each event with its id, time, sender, text and metadata. */
function textOfEvents(events: readonly SystemEvent[]): string {
  const lines = [events.length === 1 ? "1 system event" : `${events.length} system events, the oldest first`];
  let n = 0;
  for (const event of events) {
    lines.push("", `${++n}. ${headOf(event)}`, event.text);
    if (event.metadata !== undefined) lines.push(`metadata: ${event.metadata}`);
  }
  return lines.join("\n");
}

function headOf({ eventId, createdAt, caller, attempts }: SystemEvent): string {
  const tried = attempts === 0 ? "" : `, tried ${attempts} ${attempts === 1 ? "time" : "times"} before`;
  return `${eventId}, ${new Date(createdAt).toISOString()}, from ${caller}${tried}`;
}
