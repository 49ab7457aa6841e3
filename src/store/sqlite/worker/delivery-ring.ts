import type { DeliveryStep, RecorderLimits } from "#store/store.ts";
import { erasedOf, type KeptDelivery, KINDS, type PackedDelivery, packSteps } from "../delivery-codec.ts";
import type { Database } from "./database.ts";
import { type DeliveryBatch, DeliveryRows, type Sought } from "./delivery-rows.ts";
import { Ordinals } from "./ordinals.ts";
import type { Parts } from "./parts.ts";
import type { TotalsRow } from "./totals.ts";

/** A delivery that is kept. */
type Kept = {
  deliveryId: string;
  batch: DeliveryBatch;
  place: number;
  bytes: number;
  isRefused: boolean;
  isFinished: boolean;
};
/** What the recorder lets go by itself: finished deliveries, the oldest first. Those before `head` have gone. */
type Shelf = { finished: Kept[]; head: number; size: number; bytes: number };

/** What a delivery costs beside its texts. */
const DELIVERY_BYTES = 60;
/** Strangers fill no more than this part of the recorder's bytes. */
const REFUSED_SHARE = 8;
/** So many go at once at most, where the limits have become much smaller: the others follow. */
const MOST_AT_ONCE = 100;
/** More steps than any delivery needs; then no more are noted. */
const MOST_STEPS = 200;
/** So many rows of the file are looked at together. */
const ROWS_A_LOOK = 8;
/** So many that have gone are dropped together from a shelf's list. */
const DROPPED = 1_024;

/**
 * The flight recorder's ring: the oldest finished delivery goes first, one whose work is unfinished stays. Where each is, and which may go,
 * is held in memory: an index in the file would cost more than the deliveries.
 */
export class DeliveryRing {
  readonly #totals: TotalsRow;
  readonly #places: Ordinals;
  readonly #rows: DeliveryRows;
  readonly #byId = new Map<string, Kept>();
  readonly #shelf = newShelf();
  /** What refused strangers sent, so that they push out nothing else. */
  readonly #refused = newShelf();
  #mostBytes = Infinity;

  /** `open`: deliveries whose turn or event has not ended. */
  constructor({ db, totals }: Parts, open: ReadonlySet<string | undefined>) {
    this.#totals = totals;
    this.#places = new Ordinals(db, "deliveries");
    this.#rows = new DeliveryRows(db);
    this.#load(db, open);
  }

  get last(): number {
    return this.#places.last;
  }

  /** Keeps a delivery, whose work begins with it or was none. */
  add(packed: PackedDelivery, limits: RecorderLimits): void {
    const [deliveryId, kind, [, sharedBytes], text] = packed;
    const place = this.#places.next();
    // What it shares weighs as if it were its own: with whom it is shared changes.
    const bytes = DELIVERY_BYTES + sharedBytes + Buffer.byteLength(text);
    const batch = this.#rows.add(place, packed, bytes);
    const isFinished = kind !== KINDS.turn && kind !== KINDS.event;
    this.#keep({ deliveryId, batch, place, bytes, isRefused: kind === KINDS.refused, isFinished });
    if (kind === KINDS.refused) this.#letGo(this.#refused, limits.refused, limits.bytes / REFUSED_SHARE);
    else this.#letGo(this.#shelf, limits.entries, limits.bytes);
    this.#mostBytes = limits.bytes;
    this.#countExcess();
  }

  /** Its work has ended: from now on it may go. */
  finish(deliveryId: string): void {
    const kept = this.#byId.get(deliveryId);
    if (!kept || kept.isFinished) return;
    kept.isFinished = true;
    this.#shelfOf(kept).finished.push(kept);
  }

  read(deliveryId: string): KeptDelivery | undefined {
    const kept = this.#byId.get(deliveryId);
    return kept && this.#rows.read(kept.batch, kept.place);
  }

  /** Deliveries below a place, newest first, from rows that can match, of about `look` that are looked at; and the place to go on, 0 at the end. */
  below(place: number, sought: Sought, look: number): { rows: [place: number, kept: KeptDelivery][]; next: number } {
    const rows: [number, KeptDelivery][] = [];
    let next = place;
    for (let looked = 0; next > 0 && looked < look; ) {
      const found = this.#rows.below(next, ROWS_A_LOOK, sought);
      for (const row of found.rows) rows.push(row);
      looked += found.looked;
      next = found.next;
    }
    return { rows, next };
  }

  addStep(deliveryId: string, step: DeliveryStep): void {
    const kept = this.#byId.get(deliveryId);
    const delivery = this.read(deliveryId);
    if (!kept || !delivery) return;
    const [, , , steps] = delivery;
    if (steps.length >= MOST_STEPS) return;
    const longer = this.#rows.setSteps(kept.place, [...steps, ...packSteps([step])]);
    this.#weigh(kept, kept.bytes + longer);
  }

  /** Erases what came in it, and what its steps tell of that: its turn was erased. */
  erase(deliveryId: string): void {
    const kept = this.#byId.get(deliveryId);
    const delivery = this.read(deliveryId);
    if (!kept || !delivery) return;
    const erased = erasedOf(delivery);
    const bytes = DELIVERY_BYTES + Buffer.byteLength(JSON.stringify(erased));
    this.#rows.replace(kept.batch, kept.place, erased, bytes);
    this.#weigh(kept, bytes);
  }

  flush(): void {
    this.#places.flush();
    this.#rows.flush();
  }

  #load(db: Database, open: ReadonlySet<string | undefined>): void {
    const { counts } = this.#totals;
    counts.deliveries = 0;
    counts.deliveryBytes = 0;
    for (const { batch, deliveryId, place, kind, weight } of this.#rows.load(db)) {
      const isFinished = kind >= KINDS.repeated || !open.has(deliveryId);
      this.#keep({ deliveryId, batch, place, bytes: weight, isRefused: kind === KINDS.refused, isFinished });
    }
    if (counts.deliveryExcess > 0) this.#mostBytes = this.#shelf.bytes - counts.deliveryExcess;
  }

  #keep(kept: Kept): void {
    const shelf = this.#shelfOf(kept);
    this.#byId.set(kept.deliveryId, kept);
    if (kept.isFinished) shelf.finished.push(kept);
    shelf.size++;
    shelf.bytes += kept.bytes;
    this.#totals.counts.deliveries++;
    this.#totals.counts.deliveryBytes += kept.bytes;
  }

  #letGo(shelf: Shelf, entries: number, bytes: number): void {
    for (let gone = 0; gone < MOST_AT_ONCE && (shelf.size > entries || shelf.bytes > bytes); gone++) {
      const oldest = shelf.finished[shelf.head];
      if (!oldest) break;
      shelf.head++;
      this.#forget(oldest, shelf);
    }
    if (shelf.head < DROPPED) return;
    shelf.finished.splice(0, shelf.head);
    shelf.head = 0;
  }

  #forget({ deliveryId, batch, place, bytes }: Kept, shelf: Shelf): void {
    this.#byId.delete(deliveryId);
    this.#rows.letGo(batch, place);
    shelf.size--;
    shelf.bytes -= bytes;
    this.#totals.counts.deliveries--;
    this.#totals.counts.deliveryBytes -= bytes;
  }

  #weigh(kept: Kept, bytes: number): void {
    this.#shelfOf(kept).bytes += bytes - kept.bytes;
    this.#totals.counts.deliveryBytes += bytes - kept.bytes;
    kept.bytes = bytes;
    this.#countExcess();
  }

  /** What it holds past its limit, as the work of so much is unfinished. */
  #countExcess(): void {
    this.#totals.counts.deliveryExcess = Math.max(0, this.#shelf.bytes - this.#mostBytes);
  }

  #shelfOf({ isRefused }: Kept): Shelf {
    return isRefused ? this.#refused : this.#shelf;
  }
}

const newShelf = (): Shelf => ({ finished: [], head: 0, size: 0, bytes: 0 });
