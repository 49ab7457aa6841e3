import type { Delivery, DeliveryStep, DeliveryWork, RecordedDelivery, RecorderLimits } from "#store/store.ts";
import {
  type DeliveryHead,
  decodeDelivery,
  encodeDelivery,
  isDelivery,
  KEPT,
  type Kept,
  keptAt,
  ordinalAt,
  setKeptAt,
} from "./delivery-codec.ts";
import { hashOf, IdIndex } from "./id-index.ts";
import { NumberFifo } from "./number-fifo.ts";
import { NO_SLOT, NO_TAIL, type RecordPlace, RecordSegments } from "./record-segments.ts";
import { SlotOrder } from "./slot-order.ts";

/** A slot's place in the index: ordinals begin at 1, and the second number says nothing here. */
const placeOf = (slot: number) => ({ ordinal: slot + 1, seq: 1 });

/** What the recorder lets go by itself: finished deliveries, the oldest first. */
type Shelf = { readonly finished: NumberFifo; size: number; bytes: number };

/** Strangers fill no more than this part of the recorder's bytes. */
const REFUSED_SHARE = 8;
/** So many go at once at most, where the limits have become much smaller: the others follow. */
const MOST_AT_ONCE = 100;
/** More steps than any delivery needs; then no more are noted. */
const MOST_STEPS = 200;

/**
 * The flight recorder's ring: the oldest finished delivery goes first, one whose work is unfinished stays. Records are packed outside
 * the JavaScript heap: ten thousand of them, each alive for a while, were a quarter of all the work of a busy gateway.
 */
export class DeliveryRing {
  readonly order = new SlotOrder();
  readonly #records = new RecordSegments();
  readonly #index = new IdIndex();
  readonly #shelf: Shelf = { finished: new NumberFifo(), size: 0, bytes: 0 };
  /** What refused strangers sent, so that they push out nothing else. */
  readonly #refused: Shelf = { finished: new NumberFifo(), size: 0, bytes: 0 };
  #mostBytes = Infinity;

  get size(): number {
    return this.#records.size;
  }

  get bytes(): number {
    return this.#records.bytes;
  }

  /** What it holds past its limit, as the work of so much is unfinished. */
  get excessBytes(): number {
    return Math.max(0, this.#shelf.bytes - this.#mostBytes);
  }

  /** Keeps a delivery that began a turn. Answers its slot, for `finish`. */
  addOfTurn(delivery: Delivery, limits: RecorderLimits, turnId: string, sessionId: string): number {
    const ordinal = this.order.last + 1;
    const slot = this.#keep(delivery, { kept: KEPT.turn, ordinal, turnId, sessionId, eventId: undefined }, this.#shelf);
    this.#letGo(this.#shelf, limits.entries, limits.bytes);
    return slot;
  }

  /** The same of one that queued an event. */
  addOfEvent(delivery: Delivery, limits: RecorderLimits, eventId: string): number {
    const of = { turnId: undefined, sessionId: undefined, eventId };
    const slot = this.#keep(delivery, { kept: KEPT.event, ordinal: this.order.last + 1, ...of }, this.#shelf);
    this.#letGo(this.#shelf, limits.entries, limits.bytes);
    return slot;
  }

  /** Keeps one that began no work. */
  record(delivery: Delivery, limits: RecorderLimits, { turnId, sessionId, eventId }: DeliveryWork): void {
    const { answer } = delivery;
    const kept = answer === "accepted" ? KEPT.gone : KEPT[answer];
    const shelf = kept === KEPT.refused ? this.#refused : this.#shelf;
    const head = { kept, ordinal: this.order.last + 1, turnId, sessionId, eventId };
    shelf.finished.push(this.#keep(delivery, head, shelf));
    if (kept === KEPT.refused) this.#letGo(shelf, limits.refused, limits.bytes / REFUSED_SHARE);
    else this.#letGo(shelf, limits.entries, limits.bytes);
  }

  /** Its work has ended: from now on it may be let go. To be called once. */
  finish(slot: number, kept: Kept): void {
    if (slot === NO_SLOT) return;
    const { bytes, from } = this.#records.read(slot);
    setKeptAt(bytes, from, kept);
    this.#shelf.finished.push(slot);
  }

  read(slot: number, isShort: boolean): RecordedDelivery {
    const { bytes, from, to, tail } = this.#records.read(slot);
    return decodeDelivery(bytes, from, to, { hasBody: tail !== NO_TAIL, isShort });
  }

  placeOf(slot: number): RecordPlace {
    return this.#records.read(slot);
  }

  addStep(deliveryId: string, step: DeliveryStep): void {
    const slot = this.slotOf(deliveryId);
    if (slot === NO_SLOT) return;
    const delivery = this.read(slot, false);
    if (delivery.steps.length < MOST_STEPS) this.#rewrite(slot, { ...delivery, steps: [...delivery.steps, step] });
  }

  /** Erases what came in it, and what its steps tell of that: its session was deleted. */
  erase(deliveryId: string): void {
    const slot = this.slotOf(deliveryId);
    if (slot === NO_SLOT) return;
    const { bytes, from } = this.#records.read(slot);
    setKeptAt(bytes, from, KEPT.gone);
    this.#shelf.bytes -= this.#records.costOf(slot);
    this.#records.eraseTail(slot);
    this.#shelf.bytes += this.#records.costOf(slot);
    const delivery = this.read(slot, false);
    const steps = delivery.steps.map((step) => ({ ...step, detail: undefined }));
    if (steps.length > 0) this.#rewrite(slot, { ...delivery, steps });
  }

  slotOf(deliveryId: string): number {
    const found = this.#index.find(deliveryId, ({ ordinal }) => {
      const { bytes, from } = this.#records.read(ordinal - 1);
      return isDelivery(bytes, from, deliveryId);
    });
    return found ? found.ordinal - 1 : NO_SLOT;
  }

  #keep(delivery: Delivery, head: DeliveryHead, shelf: Shelf): number {
    encodeDelivery(this.#records.begin(), delivery, head);
    const slot = this.#records.add(delivery.body?.byteLength ?? NO_TAIL, hashOf(delivery.deliveryId));
    this.order.push(slot);
    this.#index.add(delivery.deliveryId, placeOf(slot));
    shelf.size++;
    shelf.bytes += this.#records.costOf(slot);
    return slot;
  }

  #rewrite(slot: number, delivery: RecordedDelivery): void {
    const { bytes, from } = this.#records.read(slot);
    const kept = keptAt(bytes, from);
    const { turnId, sessionId, eventId } = delivery;
    const head = { kept, ordinal: ordinalAt(bytes, from), turnId, sessionId, eventId };
    encodeDelivery(this.#records.begin(), delivery, head);
    const shelf = kept === KEPT.refused ? this.#refused : this.#shelf;
    shelf.bytes -= this.#records.costOf(slot);
    this.#records.replace(slot, delivery.body?.byteLength ?? NO_TAIL);
    shelf.bytes += this.#records.costOf(slot);
  }

  #letGo(shelf: Shelf, entries: number, bytes: number): void {
    if (shelf === this.#shelf) this.#mostBytes = bytes;
    for (let gone = 0; gone < MOST_AT_ONCE && (shelf.size > entries || shelf.bytes > bytes); gone++) {
      const oldest = shelf.finished.shift();
      if (oldest === undefined) break;
      this.#forget(oldest, shelf);
    }
  }

  #forget(slot: number, shelf: Shelf): void {
    const { bytes, from } = this.#records.read(slot);
    this.order.clear(ordinalAt(bytes, from));
    this.#index.deleteHash(this.#records.markOf(slot), placeOf(slot));
    shelf.size--;
    shelf.bytes -= this.#records.costOf(slot);
    this.#records.delete(slot);
  }
}
