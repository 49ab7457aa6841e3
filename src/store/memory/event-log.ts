import { queuedEvent } from "#store/queued-event.ts";
import type { EventOrder, EventStatus, SystemEvent } from "#store/store.ts";
import {
  attemptsAt,
  decodeEvent,
  deliverySlotAt,
  encodeEvent,
  encodeTry,
  endedAt,
  isEvent,
  ordinalAt,
  setAttemptsAt,
  setDeliverySlotAt,
  setEndedAt,
  setOrdinalAt,
  setStateAt,
  setTurnAt,
  stateAt,
  statusOf,
} from "./event-codec.ts";
import { hashOf, IdIndex, placeOfSlot, slotOfPlace } from "./id-index.ts";
import { NumberFifo } from "./number-fifo.ts";
import { OpenQueue } from "./open-queue.ts";
import { wantedId } from "./packed-reader.ts";
import { NO_SLOT, NO_TAIL, RecordSegments } from "./record-segments.ts";
import { SlotOrder } from "./slot-order.ts";

const NOTHING: Iterable<number> = [];
/** What an event's places in the order, in its agent's queue and among those that ended cost beside its record. */
const PLACES_BYTES = 32;

/** All system events, packed outside the JavaScript heap: there may be millions of them, and each lives for a while. */
export class EventLog {
  readonly records = new RecordSegments();
  readonly order = new SlotOrder();
  readonly #index = new IdIndex();
  /** By agent, those that have not ended. */
  readonly #queues = new Map<string, OpenQueue>();
  /** Ordinals of those that ended, in the order of their ends; one that was queued again since has another. */
  readonly #ended = new NumberFifo();
  /** Those that wait or that a turn works on. */
  open = 0;
  dead = 0;

  get bytes(): number {
    return this.records.bytes + this.records.size * PLACES_BYTES;
  }

  add(order: EventOrder, deliverySlot: number): SystemEvent {
    const event = queuedEvent(order, this.order.last + 1);
    encodeEvent(this.records.begin(), event, deliverySlot);
    const slot = this.records.add(NO_TAIL, hashOf(event.eventId));
    this.#index.add(event.eventId, placeOfSlot(slot));
    this.#enqueue(slot, event.agent);
    return event;
  }

  slotOf(eventId: string): number {
    const found = this.#index.find(eventId, (place) => {
      const { bytes, from } = this.records.read(slotOfPlace(place));
      return isEvent(bytes, from, eventId);
    });
    return found ? slotOfPlace(found) : NO_SLOT;
  }

  read(slot: number): SystemEvent {
    const { bytes, from } = this.records.read(slot);
    return decodeEvent(bytes, from);
  }

  statusOf(slot: number): EventStatus {
    const { bytes, from } = this.records.read(slot);
    return statusOf(stateAt(bytes, from));
  }

  /** It waits, and no turn works on it. */
  isFree(slot: number): boolean {
    const { bytes, from } = this.records.read(slot);
    return stateAt(bytes, from) === "queued";
  }

  /** Slots of an agent's events that wait, oldest first, above an ordinal. */
  *free(agent: string, after: number, through: number): Iterable<number> {
    for (const ordinal of this.#queues.get(agent)?.after(after) ?? NOTHING) {
      if (ordinal > through) return;
      const slot = this.order.slotOf(ordinal);
      if (slot !== NO_SLOT && this.isFree(slot)) yield slot;
    }
  }

  /** A turn works on them from now on. */
  take(slots: readonly number[], agent: string, turnId: string): void {
    const { packed } = wantedId(turnId);
    const queue = this.#queueOf(agent);
    for (const slot of slots) {
      if (!packed) this.#rewrite(slot, { turnId });
      const { bytes, from } = this.records.read(slot);
      if (packed) setTurnAt(bytes, from, packed);
      setStateAt(bytes, from, "taken");
      queue.take(ordinalAt(bytes, from));
    }
  }

  /** Its turn ended without having handled it. Answers how often that was so. */
  giveBack(slot: number, agent: string, reason: string): number {
    this.#rewrite(slot, { reason });
    const { bytes, from } = this.records.read(slot);
    setStateAt(bytes, from, "queued");
    setAttemptsAt(bytes, from, attemptsAt(bytes, from) + 1);
    this.#queueOf(agent).giveBack(ordinalAt(bytes, from));
    return attemptsAt(bytes, from);
  }

  /** Ends it. Answers the slot of its delivery, once. */
  end(slot: number, agent: string, state: "handled" | "dead", now: number): number {
    const { bytes, from } = this.records.read(slot);
    const ordinal = ordinalAt(bytes, from);
    const queue = this.#queueOf(agent);
    if (stateAt(bytes, from) === "queued") queue.take(ordinal);
    queue.end(ordinal);
    setStateAt(bytes, from, state);
    setEndedAt(bytes, from, now);
    this.#ended.push(ordinal);
    this.open--;
    if (state === "dead") this.dead++;
    const delivery = deliverySlotAt(bytes, from);
    setDeliverySlotAt(bytes, from, NO_SLOT);
    return delivery;
  }

  blame(slot: number, reason: string): void {
    this.#rewrite(slot, { reason });
  }

  /** Queues a dead one again, behind all others. */
  requeue(slot: number, agent: string): void {
    const { bytes, from } = this.records.read(slot);
    this.order.clear(ordinalAt(bytes, from));
    setOrdinalAt(bytes, from, this.order.last + 1);
    setStateAt(bytes, from, "queued");
    setAttemptsAt(bytes, from, 0);
    this.dead--;
    this.#enqueue(slot, agent);
  }

  /** Lets go what ended before a time, at most so many. Answers how many it looked at. */
  forgetBefore(time: number, limit: number): number {
    let looked = 0;
    for (; looked < limit; looked++) {
      const ordinal = this.#ended.peek();
      if (ordinal === undefined) break;
      const slot = this.order.slotOf(ordinal);
      if (slot !== NO_SLOT && !this.#forgetBefore(slot, ordinal, time)) break;
      this.#ended.shift();
    }
    return looked;
  }

  #forgetBefore(slot: number, ordinal: number, time: number): boolean {
    const { bytes, from } = this.records.read(slot);
    if (endedAt(bytes, from) >= time) return false;
    if (stateAt(bytes, from) === "dead") this.dead--;
    this.#index.deleteHash(this.records.markOf(slot), placeOfSlot(slot));
    this.order.clear(ordinal);
    this.records.delete(slot);
    return true;
  }

  #enqueue(slot: number, agent: string): void {
    this.#queueOf(agent).push(this.order.push(slot));
    this.open++;
  }

  #queueOf(agent: string): OpenQueue {
    let queue = this.#queues.get(agent);
    if (!queue) {
      queue = new OpenQueue();
      this.#queues.set(agent, queue);
    }
    return queue;
  }

  #rewrite(slot: number, change: { turnId: string } | { reason: string }): void {
    encodeTry(this.records.begin(), this.records.read(slot), change);
    this.records.replace(slot, NO_TAIL);
  }
}
