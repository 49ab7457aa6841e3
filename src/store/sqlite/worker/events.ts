import { GatewayError } from "#kit/errors.ts";
import { decodeCursor, encodeCursor } from "#store/cursors.ts";
import type { EventStatus, Page, TurnEnd, TurnError, TurnOrder } from "#store/store.ts";
import type { EventRow, WaitingBatch } from "../event-codec.ts";
import type { PackedEvent, QueuedPlace } from "../event-order.ts";
import { askForBeat } from "./beats.ts";
import { finishDelivery } from "./deliveries.ts";
import { appendGateway } from "./gateway-log.ts";
import type { Slices } from "./methods.ts";
import { busy, bytesOfLimit, checkBytes, type TurnRow } from "./rows.ts";
import { type State, tellGateway } from "./state.ts";

/** So many events are looked at before others run. */
const SLICE = 500;
/** So many are read together, as nobody knows how large they are; and about so much of them goes into one page. */
const PAGE = 50;
const MOST_TEXT = 1_048_576;

/** The system events that a turn works on. It is kept with the open turn, as JSON. */
export type TakenEvents = { ordinals: readonly number[]; maxAttempts: number; streamKeep: number };

type Waiting = { agent: string; after: number; through: number; limit: number; bytes: number };
type Listing = { agent?: string; status?: EventStatus; limit: number; cursor?: string };
type Requeue = { eventId: string; now: number; beatNow: boolean; streamKeep: number };
type GivingUp = { agent: string; reason: string; now: number; streamKeep: number; limit: number };

/** Events that wait; and the place of the last, when there may be more behind it. */
export type WaitingEvents = { batches: WaitingBatch[]; last: number | undefined };

export const eventMethods = {
  write: {
    /** A repeat is answered with its event. */
    queueEvent: (state: State, order: PackedEvent, time: number): QueuedPlace | EventRow => {
      const [now, , , , , , , idempotency] = order;
      return (idempotency && replayOf(state, idempotency, now)) ?? queue(state, order, time);
    },

    requeueEvent: (state: State, { eventId, now, beatNow, streamKeep }: Requeue, time: number) => {
      const agent = state.events.requeue(eventId);
      if (agent !== undefined) {
        state.agents.of(agent).waitingEvents++;
        appendGateway(state, [now, eventId, agent], streamKeep);
        tellGateway(state);
        if (beatNow) askForBeat(state, agent, { now, time });
      }
      return state.events.read(eventId);
    },

    failQueuedEvents: (state: State, { agent, reason, now, streamKeep, limit }: GivingUp): number => {
      const ordinals = state.events.oldest(agent, limit);
      if (ordinals.length === 0) return 0;
      state.agents.of(agent).waitingEvents -= ordinals.length;
      giveUp(state, ordinals, { agent, now, streamKeep, reason });
      tellGateway(state);
      return ordinals.length;
    },
  },

  read: {
    findEventReplay: (state: State, { key, now }: { key: { key: string; hash: string }; now: number }) =>
      replayOf(state, key, now),

    readQueuedEvents: (state: State, { agent, bytes: length, ...range }: Waiting): WaitingEvents =>
      state.events.waiting(agent, { ...range, length }),

    getEvent: (state: State, eventId: string): EventRow | undefined => state.events.read(eventId),

    *listEvents(state: State, { limit, cursor, ...wanted }: Listing): Slices {
      const page: Page<EventRow> = { items: [], next: undefined };
      let place = cursor === undefined ? state.events.last + 1 : decodeCursor(cursor);
      let last = 0;
      let bytes = 0;
      while (place > 0 && limit > 0) {
        const left = limit + 1 - page.items.length;
        const { rows, next } = state.events.below(place, { ...wanted, limit: Math.min(left, PAGE) }, SLICE);
        for (const row of rows) {
          if (page.items.length === limit || bytes >= MOST_TEXT) return { ...page, next: encodeCursor(last) };
          page.items.push(row);
          const [ordinal, , , , , [text, metadata]] = row;
          bytes += Buffer.byteLength(text) + Buffer.byteLength(metadata ?? "");
          last = ordinal;
        }
        place = next;
        yield;
      }
      return page;
    },
  },
};

const replayOf = (state: State, key: { key: string; hash: string }, now: number): EventRow | undefined => {
  const known = state.idempotency.get(key.key);
  if (!known || known.expiresAt <= now) return undefined;
  if (known.hash !== key.hash || known.eventId === undefined) {
    throw new GatewayError("idempotency-mismatch", "The key was used with another body.");
  }
  const event = state.events.read(known.eventId);
  if (!event) throw new GatewayError("event-not-found", "The event of this idempotency key is not kept any more.");
  return event;
};

const queue = (state: State, order: PackedEvent, time: number): QueuedPlace => {
  const [now, eventId, agent, body, beatNow, limits, delivery, idempotency] = order;
  const [streamKeep, maxEvents, maxBytes, entries, bytes, refused] = limits;
  const { counts } = state.totals;
  if (counts.eventsQueued >= maxEvents) {
    throw busy("gateway-busy", `${counts.eventsQueued} events wait, limits.events.`);
  }
  checkBytes(bytesOfLimit(counts), maxBytes);
  if (delivery) state.deliveries.add(delivery, { entries, bytes, refused });
  const ordinal = state.events.add(eventId, agent, delivery ? delivery[0] : null, body);
  state.agents.of(agent).waitingEvents++;
  if (idempotency) state.idempotency.keep(idempotency, { eventId, turnId: undefined });
  const seq = state.gateway.append([now, eventId, agent], streamKeep);
  if (beatNow) askForBeat(state, agent, { now, time });
  return [ordinal, seq];
};

/** Finds the events of an order, which must be free; nothing is changed yet. Throws `internal` when one is not. */
export const findEvents = (
  state: State,
  { events, session }: Pick<TurnOrder, "events"> & { session: { agent: string } },
): TakenEvents | undefined => {
  if (!events) return undefined;
  const ordinals = state.events.findFree(events.ids, session.agent);
  if (!ordinals) throw new GatewayError("internal", "An event of the turn does not wait for its agent.");
  return { ordinals, maxAttempts: events.maxAttempts, streamKeep: events.streamKeep };
};

/** The turn works on its events from now on. */
export const takeEvents = (state: State, { events, turnId, agent }: TurnRow): void => {
  if (!events) return;
  state.events.take(events.ordinals, turnId);
  state.agents.of(agent).waitingEvents -= events.ordinals.length;
};

/** Ends a turn's events with it. Watchers learn of that at the next `tellGateway`. */
export const endEvents = (
  state: State,
  { events, turnId, agent }: TurnRow,
  { status, error, now }: Pick<TurnEnd, "status" | "error" | "now">,
): void => {
  if (!events) return;
  const { ordinals, maxAttempts, streamKeep } = events;
  if (status === "completed") {
    const refs = state.events.handled(ordinals, turnId, now);
    for (const { deliveryId } of refs) finishDelivery(state, deliveryId);
    const eventIds = refs.map(({ eventId }) => eventId);
    if (eventIds.length > 0) appendGateway(state, [now, eventIds, agent, turnId], streamKeep);
    return;
  }
  const reason = reasonOf(status, error);
  const refs = state.events.giveBack(ordinals, turnId, reason);
  const lost = refs.filter(({ attempts }) => attempts >= maxAttempts).map(({ ordinal }) => ordinal);
  state.agents.of(agent).waitingEvents += ordinals.length - lost.length;
  if (lost.length > 0) giveUp(state, lost, { agent, now, streamKeep, reason });
};

const reasonOf = (status: TurnEnd["status"], error: TurnError | undefined): string =>
  error === undefined ? `The turn was ${status}.` : (error.detail ?? error.name);

const giveUp = (
  state: State,
  ordinals: readonly number[],
  { agent, now, streamKeep, reason }: { agent: string; now: number; streamKeep: number; reason: string },
): void => {
  for (const { eventId, attempts, deliveryId } of state.events.dead(ordinals, reason, now)) {
    finishDelivery(state, deliveryId);
    appendGateway(state, { at: now, name: "event.dead", eventId, agentName: agent, attempts, reason }, streamKeep);
  }
};
