import type { GatewayEntry, Store, SystemEvent, TurnEnd, TurnError } from "#store/store.ts";
import { batchOf, endBatch, requestBeat } from "./beats.ts";
import { addDeliveryStep, endDelivery, notifyOutcome, storeDelivery } from "./deliveries.ts";
import { appendNews } from "./gateway.ts";
import { NO_SEQ } from "./journal.ts";
import { findKey, storeKey } from "./keys.ts";
import { checkBytes, refuse } from "./limits.ts";
import { scanBack } from "./pages.ts";
import type { OpenTurnRecord, Records, Rule, RuleInPieces } from "./records.ts";
import { bytesOfEvent, checkEventShare, countEventBytes, countWaitingEvent } from "./shares.ts";

export const queueEvent: Rule<"queueEvent"> = (records, order) => {
  const known = order.idempotency && findEventReplay(records, order.idempotency, order.now);
  if (known) return { event: known, replayed: true };
  const { now, agent, eventId, delivery, idempotency, limits, recorder, streamKeep } = order;
  const { openEvents } = records.totals.open;
  if (openEvents >= limits.events) {
    const frees = "A new event is accepted when an agent has handled one of them.";
    throw refuse("gateway-busy", `limits.events is reached: ${openEvents} events are waiting. ${frees}`);
  }
  checkBytes(records, limits.storeBytes);
  checkEventShare(records, order.caller, limits);
  const bytes = bytesOfEvent(order);
  const event: SystemEvent = {
    eventId,
    agent,
    text: order.text,
    metadata: order.metadata,
    caller: order.caller,
    status: "queued",
    attempts: 0,
    createdAt: now,
    endedAt: undefined,
    turnId: undefined,
    reason: undefined,
    deliveryId: delivery?.deliveryId,
    ordinal: records.next("event"),
    bytes,
  };
  records.events.put(event);
  records.agents.count(agent, { waitingEvents: 1, openEvents: 1 });
  countEventBytes(records, event, bytes);
  countWaitingEvent(records, event, 1);
  if (delivery) {
    storeDelivery(records, delivery, { eventId, agent }, recorder);
    records.notify({ kind: "recorded", deliveryId: delivery.deliveryId });
  }
  if (idempotency) storeKey(records, idempotency, { eventId });
  appendNews(records, [{ seq: NO_SEQ, at: now, name: "event.queued", eventId, agentName: agent }], streamKeep);
  if (order.beatNow) requestBeat(records, agent);
  return { event, replayed: false };
};

export const findEventReplay: Rule<"findEventReplay"> = (records, key, now) => {
  const eventId = findKey(records, key, now, "eventId")?.eventId;
  if (eventId === undefined) return undefined;
  const event = getEvent(records, eventId);
  if (!event) throw refuse("event-not-found", "The event of this idempotency key is no longer stored.");
  return event;
};

export const readQueuedEvents: Rule<"readQueuedEvents"> = (records, query) => findWaiting(records, query);

export function findWaiting(
  records: Records,
  { agent, after, through, limit, bytes }: Parameters<Store["readQueuedEvents"]>[0],
): SystemEvent[] {
  const events: SystemEvent[] = [];
  let left = bytes;
  for (const event of findFree(records, agent, { after, through }, limit)) {
    left -= bytesOf(event);
    if (left < 0 && events.length > 0) break;
    events.push(event);
  }
  return events;
}

/** The queued events of an agent without a turn: the events below and above the batch of its beat. */
function findFree(
  records: Records,
  agent: string,
  { after, through }: { after: number; through: number },
  limit: number,
): SystemEvent[] {
  const batch = batchOf(records, agent);
  if (!batch) return records.events.queued(agent, { after, through }, limit);
  const below = { after, through: Math.min(through, batch.before) };
  const events = records.events.queued(agent, below, limit);
  if (events.length === limit) return events;
  const above = { after: Math.max(after, batch.after), through };
  return events.concat(records.events.queued(agent, above, limit - events.length));
}

export const getEvent: Rule<"getEvent"> = (records, eventId) => {
  const event = records.events.find(eventId);
  return event && withTurn(records, event);
};

/** The event with the turn that works on it. */
function withTurn(records: Records, event: SystemEvent): SystemEvent {
  const batch = event.status === "queued" ? batchOf(records, event.agent) : undefined;
  const isTaken = batch && batch.before < event.ordinal && event.ordinal <= batch.after;
  return isTaken ? { ...event, turnId: batch.turnId } : event;
}

function bytesOf({ text, metadata }: SystemEvent): number {
  return Buffer.byteLength(text) + Buffer.byteLength(metadata ?? "");
}

export const listEvents: RuleInPieces<"listEvents"> = (records, { agent, status, limit, cursor }) =>
  scanBack({
    before: (ordinal, most) => records.events.before(ordinal, most),
    placeOf: ({ ordinal }) => ordinal,
    show: (event) => {
      const matches = (status ?? event.status) === event.status && (agent ?? event.agent) === event.agent;
      return matches ? withTurn(records, event) : undefined;
    },
    bytesOf,
    limit,
    cursor,
  });

export const requeueEvent: Rule<"requeueEvent"> = (records, eventId, { now, beatNow, streamKeep }) => {
  const dead = records.events.find(eventId);
  if (dead?.status !== "dead") return dead && withTurn(records, dead);
  const { agent } = dead;
  const ordinal = records.next("event");
  const event: SystemEvent = { ...dead, status: "queued", attempts: 0, endedAt: undefined, ordinal };
  records.events.put(event);
  records.agents.count(agent, { waitingEvents: 1, openEvents: 1, deadEvents: -1 });
  countWaitingEvent(records, event, 1);
  notifyOutcome(records, event.deliveryId);
  appendNews(records, [{ seq: NO_SEQ, at: now, name: "event.queued", eventId, agentName: agent }], streamKeep);
  if (beatNow) requestBeat(records, agent);
  return event;
};

export const failQueuedEvents: Rule<"failQueuedEvents"> = (records, agent, reason, { now, streamKeep, limit }) => {
  const news: GatewayEntry[] = [];
  const free = findFree(records, agent, { after: 0, through: Infinity }, limit);
  for (const event of free) {
    records.agents.count(agent, { waitingEvents: -1 });
    news.push(endEvent(records, { ...event, reason }, "dead", now));
  }
  appendNews(records, news, streamKeep);
  return free.length;
};

/** Ends the events of a turn that ends: each is handled, returned to the queue, or dead after its last failed turn. The beat can then continue. */
export function endEvents(
  records: Records,
  { turn, open }: OpenTurnRecord,
  { status, error, now }: Pick<TurnEnd, "status" | "error" | "now">,
): void {
  if (open.task?.kind !== "beat") return;
  const { ids, maxAttempts, streamKeep } = open.task;
  const news: GatewayEntry[] = [];
  const dead: string[] = [];
  let returned = 0;
  for (const found of ids.flatMap((eventId) => records.events.find(eventId) ?? [])) {
    // Beats of version 0.2.0 could overlap, so another turn may have ended the event.
    if (found.status !== "queued") continue;
    const event = { ...found, turnId: turn.turnId };
    if (status === "completed") {
      news.push(endEvent(records, event, "handled", now));
      continue;
    }
    const attempts = event.attempts + 1;
    const failed = { ...event, attempts, reason: reasonOf(status, error) };
    if (attempts < maxAttempts) {
      records.events.put(failed);
      records.agents.count(turn.agent, { waitingEvents: 1 });
      recordReturn(records, failed, turn.turnId, now);
      returned++;
    } else {
      news.push(endEvent(records, failed, "dead", now));
      dead.push(event.eventId);
    }
  }
  appendNews(records, news, streamKeep);
  endBatch(records, turn, { dead, returned }, { now, streamKeep });
}

function recordReturn(
  records: Records,
  { deliveryId, attempts, reason }: SystemEvent,
  turnId: string,
  at: number,
): void {
  if (deliveryId === undefined) return;
  const detail = JSON.stringify({ turn_id: turnId, attempts, reason });
  addDeliveryStep(records, deliveryId, { at, name: "event.returned", detail });
}

function reasonOf(status: TurnEnd["status"], error: TurnError | undefined): string {
  return error === undefined ? `The turn was ${status}.` : (error.detail ?? error.name);
}

/** Ends an event that is not counted as waiting. Returns the entry for the gateway's stream. */
function endEvent(records: Records, event: SystemEvent, status: "handled" | "dead", now: number): GatewayEntry {
  const { eventId, agent: agentName, turnId = "", attempts, reason = "" } = event;
  records.events.put({ ...event, status, endedAt: now });
  records.agents.count(agentName, status === "dead" ? { openEvents: -1, deadEvents: 1 } : { openEvents: -1 });
  countWaitingEvent(records, event, -1);
  endDelivery(records, event.deliveryId);
  notifyOutcome(records, event.deliveryId);
  return status === "handled"
    ? { seq: NO_SEQ, at: now, name: "event.handled", eventId, agentName, turnId }
    : { seq: NO_SEQ, at: now, name: "event.dead", eventId, agentName, attempts, reason };
}

/** Lets go of the first `limit` events that ended before `time`. Answers their number. */
export function forgetEventsBefore(records: Records, time: number, limit: number): number {
  const ended = records.events.endedBefore(time, limit);
  for (const event of ended) {
    records.events.delete(event);
    countEventBytes(records, event, -(event.bytes ?? 0));
    if (event.status === "dead") records.agents.count(event.agent, { deadEvents: -1 });
  }
  return ended.length;
}
