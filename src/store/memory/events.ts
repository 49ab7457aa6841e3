import { GatewayError } from "#kit/errors.ts";
import type { EventOrder, Store, SystemEvent, TurnEnd, TurnError, TurnOrder } from "#store/store.ts";
import { askForBeat } from "./beats.ts";
import { KEPT } from "./delivery-codec.ts";
import { isFor, stateAt, statusOf } from "./event-codec.ts";
import { NO_SLOT } from "./record-segments.ts";
import { NO_SEQ, type TakenEvents, type TurnRow } from "./rows.ts";
import { scanBack } from "./scan.ts";
import { appendGateway, bytesOf, type State, tellGateway } from "./state.ts";

type EventMethods = Pick<
  Store,
  | "queueEvent"
  | "findEventReplay"
  | "readQueuedEvents"
  | "getEvent"
  | "listEvents"
  | "requeueEvent"
  | "failQueuedEvents"
>;

const BUSY_HINT_MS = 1_000;

export const eventMethods = (state: State): EventMethods => ({
  queueEvent: (order) => {
    const known = order.idempotency && replayOf(state, order.idempotency, order.now);
    return known ? { event: known, replayed: true } : { event: queue(state, order), replayed: false };
  },

  findEventReplay: async (key, now) => replayOf(state, key, now),

  readQueuedEvents: async ({ agent, after, through, limit, bytes }) => {
    const events: SystemEvent[] = [];
    let left = bytes;
    for (const slot of state.events.free(agent, after, through)) {
      if (events.length >= limit) break;
      const event = state.events.read(slot);
      left -= Buffer.byteLength(event.text) + Buffer.byteLength(event.metadata ?? "");
      if (left < 0 && events.length > 0) break;
      events.push(event);
    }
    return events;
  },

  getEvent: async (eventId) => {
    const slot = state.events.slotOf(eventId);
    return slot === NO_SLOT ? undefined : state.events.read(slot);
  },

  listEvents: async ({ agent, status, limit, cursor }) => {
    const { records, order } = state.events;
    const matches = (slot: number): boolean => {
      const { bytes, from } = records.read(slot);
      if (status !== undefined && statusOf(stateAt(bytes, from)) !== status) return false;
      return agent === undefined || isFor(bytes, from, agent);
    };
    const lengthOf = (slot: number): number => records.costOf(slot);
    return scanBack({ order, limit, cursor, matches, lengthOf, read: (slot) => state.events.read(slot) });
  },

  requeueEvent: async (eventId, { now, beatNow, streamKeep }) => {
    const slot = state.events.slotOf(eventId);
    if (slot === NO_SLOT) return undefined;
    const { status, agent } = state.events.read(slot);
    if (status === "dead") {
      state.events.requeue(slot, agent);
      state.agents.of(agent).waitingEvents++;
      appendGateway(state, { seq: NO_SEQ, at: now, name: "event.queued", eventId, agentName: agent }, streamKeep);
      tellGateway(state);
      if (beatNow) askForBeat(state, agent);
    }
    return state.events.read(slot);
  },

  failQueuedEvents: async (agent, reason, { now, streamKeep, limit }) => {
    const slots: number[] = [];
    for (const slot of state.events.free(agent, 0, Infinity)) {
      if (slots.length >= limit) break;
      slots.push(slot);
    }
    for (const slot of slots) {
      state.events.blame(slot, reason);
      state.agents.of(agent).waitingEvents--;
      giveUp(state, slot, { agent, now, streamKeep });
    }
    tellGateway(state);
    return slots.length;
  },
});

const replayOf = (state: State, key: { key: string; hash: string }, now: number): SystemEvent | undefined => {
  const known = state.idempotency.get(key.key);
  if (!known || known.expiresAt <= now) return undefined;
  if (known.hash !== key.hash || known.eventId === undefined) {
    throw new GatewayError("idempotency-mismatch", "The key was used with another body.");
  }
  const slot = state.events.slotOf(known.eventId);
  if (slot === NO_SLOT)
    throw new GatewayError("event-not-found", "The event of this idempotency key is not kept any more.");
  return state.events.read(slot);
};

const queue = (state: State, order: EventOrder): SystemEvent => {
  const { now, agent, eventId, delivery, idempotency, limits } = order;
  if (state.events.open >= limits.events) {
    throw full("gateway-busy", `${state.events.open} events wait, limits.events.`);
  }
  const bytes = bytesOf(state);
  if (bytes >= limits.storeBytes) throw full("store-full", `The store holds ${bytes} bytes, limits.storeBytes.`);
  const slot = delivery ? state.deliveries.addOfEvent(delivery, order.recorder, eventId) : NO_SLOT;
  const event = state.events.add(order, slot);
  state.agents.of(agent).waitingEvents++;
  if (idempotency) state.idempotency.keep(idempotency, { eventId, turnId: undefined });
  appendGateway(state, { seq: NO_SEQ, at: now, name: "event.queued", eventId, agentName: agent }, order.streamKeep);
  tellGateway(state);
  if (order.beatNow) askForBeat(state, agent);
  return event;
};

const full = (name: "gateway-busy" | "store-full", detail: string): GatewayError =>
  new GatewayError(name, detail, { retryAfterMs: BUSY_HINT_MS });

/** Finds the events of an order, which must be free; nothing is kept yet. */
export const findEvents = (
  state: State,
  agent: string,
  { ids, maxAttempts, streamKeep }: NonNullable<TurnOrder["events"]>,
): TakenEvents => {
  const slots: number[] = [];
  for (const eventId of ids) {
    const slot = state.events.slotOf(eventId);
    if (slot !== NO_SLOT && isFreeFor(state, slot, agent)) slots.push(slot);
  }
  if (slots.length < ids.length || new Set(slots).size < slots.length) {
    throw new GatewayError("internal", "An event of the turn does not wait for its agent.");
  }
  return { ids, slots, maxAttempts, streamKeep };
};

const isFreeFor = (state: State, slot: number, agent: string): boolean => {
  const { bytes, from } = state.events.records.read(slot);
  return stateAt(bytes, from) === "queued" && isFor(bytes, from, agent);
};

/** The turn works on these events from now on. */
export const takeEvents = (state: State, row: TurnRow, events: TakenEvents): void => {
  state.events.take(events.slots, row.agent, row.turnId);
  row.counts.waitingEvents -= events.slots.length;
};

/** Ends a turn's events with it. Watchers learn of that at the next `tellGateway`. */
export const endEvents = (
  state: State,
  row: TurnRow,
  { status, error, now }: Pick<TurnEnd, "status" | "error" | "now">,
): void => {
  if (!row.events) return;
  const { ids, slots, maxAttempts, streamKeep } = row.events;
  const { agent, turnId } = row;
  for (const [n, slot] of slots.entries()) {
    if (status === "completed") {
      const eventId = ids[n] as string;
      state.deliveries.finish(state.events.end(slot, agent, "handled", now), KEPT.event);
      appendGateway(
        state,
        { seq: NO_SEQ, at: now, name: "event.handled", eventId, agentName: agent, turnId },
        streamKeep,
      );
    } else if (state.events.giveBack(slot, agent, reasonOf(status, error)) < maxAttempts) {
      row.counts.waitingEvents++;
    } else {
      giveUp(state, slot, { agent, now, streamKeep });
    }
  }
};

const reasonOf = (status: TurnEnd["status"], error: TurnError | undefined): string =>
  error === undefined ? `The turn was ${status}.` : (error.detail ?? error.name);

const giveUp = (
  state: State,
  slot: number,
  { agent, now, streamKeep }: { agent: string; now: number; streamKeep: number },
): void => {
  state.deliveries.finish(state.events.end(slot, agent, "dead", now), KEPT.event);
  const { eventId, attempts, reason = "" } = state.events.read(slot);
  appendGateway(
    state,
    { seq: NO_SEQ, at: now, name: "event.dead", eventId, agentName: agent, attempts, reason },
    streamKeep,
  );
};
