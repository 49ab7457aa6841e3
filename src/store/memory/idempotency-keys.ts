import { randomInt } from "node:crypto";
import { hashOf, IdIndex, placeOfSlot, slotOfPlace } from "./id-index.ts";
import { NumberFifo } from "./number-fifo.ts";
import { PackedReader } from "./packed-reader.ts";
import { NO_SLOT, NO_TAIL, RecordSegments } from "./record-segments.ts";

/** What a key started. */
export type KeyWork = { turnId: string; eventId: undefined } | { turnId: undefined; eventId: string };
export type KnownKey = { hash: string; expiresAt: number } & KeyWork;

const OF_TURN = 0;
const OF_EVENT = 1;

/** Idempotency keys, outside the JavaScript heap: each is kept for a day, and there may be millions of them. */
export class IdempotencyKeys {
  readonly #records = new RecordSegments();
  /** Callers choose the keys. */
  readonly #seed = randomInt(1, 2 ** 32);
  readonly #index = new IdIndex(this.#seed);
  /** Slots in the order in which they were kept, which is that of their ends. */
  readonly #byAge = new NumberFifo();

  get bytes(): number {
    return this.#records.bytes;
  }

  get(key: string): KnownKey | undefined {
    const slot = this.#slotOf(key);
    if (slot === NO_SLOT) return undefined;
    const { bytes, from } = this.#records.read(slot);
    const reader = new PackedReader(bytes, from);
    reader.skipText();
    const expiresAt = reader.time();
    const hash = reader.text();
    return reader.byte() === OF_TURN
      ? { hash, expiresAt, turnId: reader.id("turn_"), eventId: undefined }
      : { hash, expiresAt, turnId: undefined, eventId: reader.id("evt_") };
  }

  /** Keeps a key, in the place of one that has ended. */
  keep(idempotency: { key: string; hash: string; expiresAt: number }, { turnId, eventId }: KeyWork): void {
    const { key, hash, expiresAt } = idempotency;
    const hashed = hashOf(key, this.#seed);
    const old = this.#slotOf(key);
    // It goes with its turn in the queue; until then nobody finds it.
    if (old !== NO_SLOT) this.#index.deleteHash(hashed, placeOfSlot(old));
    const writer = this.#records.begin();
    writer.text(key);
    writer.time(expiresAt);
    writer.text(hash);
    writer.byte(turnId === undefined ? OF_EVENT : OF_TURN);
    if (turnId === undefined) writer.id(eventId, "evt_");
    else writer.id(turnId, "turn_");
    const slot = this.#records.add(NO_TAIL, hashed);
    this.#index.add(key, placeOfSlot(slot));
    this.#byAge.push(slot);
  }

  /** Lets go what has ended, at most so many. Answers how many those were. */
  forgetUntil(now: number, limit: number): number {
    let gone = 0;
    for (; gone < limit; gone++) {
      const oldest = this.#byAge.peek();
      if (oldest === undefined) break;
      // `| 0`: see `slotOfPlace`.
      const slot = oldest | 0;
      if (this.#expiresAt(slot) > now) break;
      this.#byAge.shift();
      this.#index.deleteHash(this.#records.markOf(slot), placeOfSlot(slot));
      this.#records.delete(slot);
    }
    return gone;
  }

  #expiresAt(slot: number): number {
    const { bytes, from } = this.#records.read(slot);
    const reader = new PackedReader(bytes, from);
    reader.skipText();
    return reader.time();
  }

  #slotOf(key: string): number {
    const found = this.#index.find(key, (place) => {
      const { bytes, from } = this.#records.read(slotOfPlace(place));
      return new PackedReader(bytes, from).text() === key;
    });
    return found ? slotOfPlace(found) : NO_SLOT;
  }
}
