import type { DeliveryStep, RecorderLimits } from "#store/store.ts";
import { decodeMore, encodeMore, KINDS, type PackedDelivery } from "../delivery-codec.ts";
import type { Database, Rows } from "./database.ts";
import { Ordinals } from "./ordinals.ts";
import type { Parts } from "./parts.ts";
import type { TotalsRow } from "./totals.ts";

/** A delivery that is kept. */
type Kept = { deliveryId: string; place: number; bytes: number; isRefused: boolean; isFinished: boolean };
/** What the recorder lets go by itself: finished deliveries, the oldest first. Those before `head` have gone. */
type Shelf = { finished: Kept[]; head: number; size: number; bytes: number };
type WholeRow = [kind: number, info: string, more: string, body: string | Buffer | null];
type ShortRow = [place: number, kind: number, info: string];

/** What a delivery costs beside its texts. */
const DELIVERY_BYTES = 60;
/** Strangers fill no more than this part of the recorder's bytes. */
const REFUSED_SHARE = 8;
/** So many go at once at most, where the limits have become much smaller: the others follow. */
const MOST_AT_ONCE = 100;
/** More steps than any delivery needs; then no more are noted. */
const MOST_STEPS = 200;
/** So many that have gone are dropped together from a shelf's list. */
const DROPPED = 1_024;

/**
 * The flight recorder's ring: the oldest finished delivery goes first, one whose work is unfinished stays. Where each is, and which may go,
 * is held in memory: an index in the file would cost more than the deliveries.
 */
export class DeliveryRing {
  readonly #totals: TotalsRow;
  readonly #places: Ordinals;
  readonly #rows: Rows;
  readonly #whole;
  readonly #short;
  readonly #slice;
  readonly #setMore;
  readonly #erase;
  readonly #delete;
  readonly #byId = new Map<string, Kept>();
  readonly #shelf = newShelf();
  /** What refused strangers sent, so that they push out nothing else. */
  readonly #refused = newShelf();
  /** Places of those that have gone, as they are to be deleted. */
  #gone: number[] = [];
  #mostBytes = Infinity;

  /** `open`: deliveries whose turn or event has not ended. */
  constructor({ db, totals }: Parts, open: ReadonlySet<string | undefined>) {
    this.#totals = totals;
    this.#places = new Ordinals(db, "deliveries");
    this.#rows = db.rows("INSERT INTO deliveries (place, kind, info, more, body)", 5);
    this.#whole = db.query("SELECT kind, info, more, body FROM deliveries WHERE place = ?");
    this.#short = db.query(
      `SELECT place, kind, info FROM deliveries
      WHERE place < ? AND place >= ? AND kind BETWEEN ? AND ? AND (? IS NULL OR instr(info, ?)) ORDER BY place DESC`,
    );
    this.#slice = db.query("SELECT place FROM deliveries WHERE place < ? ORDER BY place DESC LIMIT 1 OFFSET ?");
    this.#setMore = db.run("UPDATE deliveries SET more = ? WHERE place = ?");
    this.#erase = db.run("UPDATE deliveries SET more = ?, body = NULL WHERE place = ?");
    this.#delete = db.run("DELETE FROM deliveries WHERE place BETWEEN ? AND ?");
    this.#load(db, open);
  }

  get last(): number {
    return this.#places.last;
  }

  /** Keeps a delivery, whose work begins with it or was none. */
  add([deliveryId, kind, info, more, body]: PackedDelivery, limits: RecorderLimits): void {
    const place = this.#places.next();
    const value = typeof body === "string" || body === null ? body : bufferOf(body);
    this.#rows.add(place, kind, info, more, value);
    const bytes = DELIVERY_BYTES + Buffer.byteLength(info) + Buffer.byteLength(more) + (value?.length ?? 0);
    const isFinished = kind !== KINDS.turn && kind !== KINDS.event;
    this.#keep({ deliveryId, place, bytes, isRefused: kind === KINDS.refused, isFinished });
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

  read(deliveryId: string): WholeRow | undefined {
    const kept = this.#byId.get(deliveryId);
    if (!kept) return undefined;
    this.flush();
    return this.#whole.get<WholeRow>([kept.place]);
  }

  /** Of about so many below a place those that may match, newest first; and the place where to go on, 0 at the end. */
  below(
    place: number,
    { kinds: [least, most], holds }: { kinds: readonly [number, number]; holds: string | null },
    look: number,
  ): { rows: ShortRow[]; next: number } {
    this.flush();
    const [next] = this.#slice.get<[number]>([place, look]) ?? [0];
    return { rows: this.#short.all<ShortRow>([place, next, least, most, holds, holds]), next };
  }

  addStep(deliveryId: string, step: DeliveryStep): void {
    const kept = this.#byId.get(deliveryId);
    const row = this.read(deliveryId);
    if (!kept || !row) return;
    const { headers, steps } = decodeMore(row[2]);
    if (steps.length >= MOST_STEPS) return;
    const more = encodeMore(headers, [...steps, step]);
    this.#setMore([more, kept.place]);
    this.#weigh(kept, kept.bytes + Buffer.byteLength(more) - Buffer.byteLength(row[2]));
  }

  /** Erases what came in it, and what its steps tell of that: its turn was erased. */
  erase(deliveryId: string): void {
    const kept = this.#byId.get(deliveryId);
    const row = this.read(deliveryId);
    if (!kept || !row) return;
    const { headers, steps } = decodeMore(row[2]);
    const more = encodeMore(
      headers,
      steps.map((step) => ({ ...step, detail: undefined })),
    );
    this.#erase([more, kept.place]);
    this.#weigh(kept, DELIVERY_BYTES + Buffer.byteLength(row[1]) + Buffer.byteLength(more));
  }

  flush(): void {
    this.#places.flush();
    this.#rows.flush();
    if (this.#gone.length === 0) return;
    const gone = this.#gone.sort((a, b) => a - b);
    this.#gone = [];
    let first = gone[0] as number;
    for (const [at, place] of gone.entries()) {
      if (gone[at + 1] === place + 1) continue;
      this.#delete([first, place]);
      first = gone[at + 1] ?? 0;
    }
  }

  #load(db: Database, open: ReadonlySet<string | undefined>): void {
    const { counts } = this.#totals;
    counts.deliveries = 0;
    counts.deliveryBytes = 0;
    const all = db.query(
      `SELECT place, kind, json_extract(info, '$[0]'), octet_length(info) + octet_length(more) + coalesce(octet_length(body), 0)
      FROM deliveries ORDER BY place`,
    );
    for (const [place, kind, deliveryId, length] of all.all<[number, number, string, number]>([])) {
      const isFinished = kind >= KINDS.repeated || !open.has(deliveryId);
      const bytes = DELIVERY_BYTES + length;
      this.#keep({ deliveryId, place, bytes, isRefused: kind === KINDS.refused, isFinished });
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

  #forget({ deliveryId, place, bytes }: Kept, shelf: Shelf): void {
    this.#byId.delete(deliveryId);
    this.#gone.push(place);
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
const bufferOf = ({ buffer, byteOffset, length }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, length);
