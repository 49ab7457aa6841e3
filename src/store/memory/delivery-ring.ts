import type { Delivery, DeliveryStep, DeliveryWork, RecordedDelivery, RecorderLimits } from "#store/store.ts";
import {
  decodeDelivery,
  encodeDelivery,
  idTimeAt,
  isDelivery,
  KEPT,
  type Kept,
  keptAt,
  ordinalAt,
  setKeptAt,
} from "./delivery-codec.ts";
import { NumberFifo } from "./number-fifo.ts";
import { readIdTime } from "./packed.ts";
import { wantedId } from "./packed-reader.ts";
import { NO_SLOT, NO_TAIL, type RecordPlace, RecordSegments } from "./record-segments.ts";
import { RecordedHeads } from "./recorded-heads.ts";
import { SlotOrder } from "./slot-order.ts";

/** What the recorder lets go by itself: finished deliveries, the oldest first. */
type Shelf = { readonly finished: NumberFifo; size: number; bytes: number };

/** Strangers fill no more than this part of the recorder's bytes. */
const REFUSED_SHARE = 8;
/** So many go at once at most, where the limits have become much smaller: the others follow. */
const MOST_AT_ONCE = 100;
/** How far from what was found last the next is looked for first. */
const NEAR = 8;
/** More steps than any delivery needs; then no more are noted. */
const MOST_STEPS = 200;

/**
 * The flight recorder's ring: the oldest finished delivery goes first, one whose work is unfinished stays. Records are packed outside
 * the JavaScript heap: ten thousand of them, each alive for a while, were a quarter of all the work of a busy gateway.
 */
export class DeliveryRing {
  readonly order = new SlotOrder();
  readonly #records = new RecordSegments();
  readonly #heads = new RecordedHeads(this.#records);
  readonly #shelf: Shelf = { finished: new NumberFifo(), size: 0, bytes: 0 };
  /** What refused strangers sent, so that they push out nothing else. */
  readonly #refused: Shelf = { finished: new NumberFifo(), size: 0, bytes: 0 };
  #mostBytes = Infinity;
  /** The ordinal of what was looked for last. */
  #foundAt = 0;

  get size(): number {
    return this.#shelf.size + this.#refused.size;
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
    const slot = this.#keep(delivery, KEPT.turn, turnId, sessionId, undefined, this.#shelf);
    this.#letGo(this.#shelf, limits.entries, limits.bytes);
    return slot;
  }

  /** The same of one that queued an event. */
  addOfEvent(delivery: Delivery, limits: RecorderLimits, eventId: string): number {
    const slot = this.#keep(delivery, KEPT.event, undefined, undefined, eventId, this.#shelf);
    this.#letGo(this.#shelf, limits.entries, limits.bytes);
    return slot;
  }

  /** Keeps one that began no work. */
  record(delivery: Delivery, limits: RecorderLimits, { turnId, sessionId, eventId }: DeliveryWork): void {
    const { answer } = delivery;
    const kept = answer === "accepted" ? KEPT.gone : KEPT[answer];
    const shelf = kept === KEPT.refused ? this.#refused : this.#shelf;
    shelf.finished.push(this.#keep(delivery, kept, turnId, sessionId, eventId, shelf));
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
    const apart = this.#apartOf(slot);
    const head = apart === NO_SLOT ? undefined : this.#heads.read(apart, isShort);
    return decodeDelivery(bytes, from, to, { hasBody: tail !== NO_TAIL, isShort, head });
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

  /** Ids are looked for by the time in them: to keep an index of them cost every request more than all looking ever does. */
  slotOf(deliveryId: string): number {
    const wanted = wantedId(deliveryId);
    const isIt = (slot: number): boolean => {
      const { bytes, from } = this.#records.read(slot);
      return isDelivery(bytes, from, wanted);
    };
    const at = wanted.packed && readIdTime(wanted.packed, 0);
    const ordinal = this.#near(isIt) || this.order.find(at, isIt);
    if (ordinal === 0) return NO_SLOT;
    this.#foundAt = ordinal;
    return this.order.slotOf(ordinal);
  }

  /** Who erases a session asks for one after another. */
  #near(isIt: (slot: number) => boolean): number {
    for (let ordinal = this.#foundAt + 1; ordinal <= this.#foundAt + NEAR; ordinal++) {
      const slot = this.order.slotOf(ordinal);
      if (slot !== NO_SLOT && isIt(slot)) return ordinal;
    }
    return 0;
  }

  #keep(
    delivery: Delivery,
    kept: Kept,
    turnId: string | undefined,
    sessionId: string | undefined,
    eventId: string | undefined,
    shelf: Shelf,
  ): number {
    const before = this.#records.bytes;
    // Of strangers nothing is kept for longer than their request.
    const apart = shelf === this.#shelf ? this.#heads.keep(delivery) : NO_SLOT;
    const ordinal = this.order.last + 1;
    const head = { kept, ordinal, turnId, sessionId, eventId, isApart: apart !== NO_SLOT };
    encodeDelivery(this.#records.begin(delivery.body?.byteLength), delivery, head);
    const slot = this.#records.add(delivery.body?.byteLength ?? NO_TAIL, apart + 1);
    const { bytes, from } = this.#records.read(slot);
    this.order.push(slot, idTimeAt(bytes, from));
    shelf.size++;
    shelf.bytes += this.#records.bytes - before;
    return slot;
  }

  /** Where its head is kept. */
  #apartOf(slot: number): number {
    return this.#records.markOf(slot) - 1;
  }

  #rewrite(slot: number, delivery: RecordedDelivery): void {
    const { bytes, from } = this.#records.read(slot);
    const kept = keptAt(bytes, from);
    const { turnId, sessionId, eventId } = delivery;
    const isApart = this.#apartOf(slot) !== NO_SLOT;
    const head = { kept, ordinal: ordinalAt(bytes, from), turnId, sessionId, eventId, isApart };
    encodeDelivery(this.#records.begin(delivery.body?.byteLength), delivery, head);
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
      // `| 0`: see `slotOfPlace`.
      this.#forget(oldest | 0, shelf);
    }
  }

  #forget(slot: number, shelf: Shelf): void {
    const { bytes, from } = this.#records.read(slot);
    this.order.clear(ordinalAt(bytes, from));
    const apart = this.#apartOf(slot);
    const before = this.#records.bytes;
    this.#records.delete(slot);
    if (apart !== NO_SLOT) this.#heads.release(apart);
    shelf.size--;
    shelf.bytes -= before - this.#records.bytes;
  }
}
