import type { Delivery, RecorderLimits } from "#store/store.ts";
import { decodeDelivery, encodeDelivery, isDelivery } from "./delivery-codec.ts";
import { Fifo } from "./fifo.ts";
import { hashOf, IdIndex } from "./id-index.ts";
import { PackedWriter } from "./packed.ts";
import { NO_SLOT, RecordSegments } from "./record-segments.ts";

/** A slot's place in the index: ordinals begin at 1, and the second number says nothing here. */
const placeOf = (slot: number) => ({ ordinal: slot + 1, seq: 1 });

/**
 * The flight recorder's ring: the oldest finished delivery goes first, one whose work is unfinished stays. Records are packed outside
 * the JavaScript heap: ten thousand of them, each alive for a while, were a quarter of all the work of a busy gateway.
 */
export class DeliveryRing {
  readonly #records = new RecordSegments();
  readonly #index = new IdIndex();
  readonly #finished = new Fifo<number>();
  readonly #writer = new PackedWriter();

  get size(): number {
    return this.#records.size;
  }

  get bytes(): number {
    return this.#records.bytes;
  }

  /** Keeps a delivery whose work has begun. Answers its slot, for `finish`. */
  add(delivery: Delivery, limits: RecorderLimits): number {
    const hash = hashOf(delivery.deliveryId);
    this.#writer.begin();
    encodeDelivery(this.#writer, delivery);
    const slot = this.#records.add(this.#writer.bytes, this.#writer.length, delivery.body?.byteLength ?? NO_BODY, hash);
    this.#index.add(delivery.deliveryId, placeOf(slot));
    while (this.size > limits.entries || this.bytes > limits.bytes) {
      const oldest = this.#finished.shift();
      if (oldest === undefined) break;
      this.#forget(oldest);
    }
    return slot;
  }

  /** Its work has ended: from now on it may be let go. To be called once. */
  finish(slot: number): void {
    if (slot !== NO_SLOT) this.#finished.push(slot);
  }

  get(deliveryId: string): Delivery | undefined {
    const slot = this.#slotOf(deliveryId);
    return slot === NO_SLOT ? undefined : this.#read(slot);
  }

  eraseBody(deliveryId: string): void {
    const slot = this.#slotOf(deliveryId);
    if (slot !== NO_SLOT) this.#records.eraseTail(slot);
  }

  #slotOf(deliveryId: string): number {
    const found = this.#index.find(deliveryId, ({ ordinal }) => {
      const { bytes, from } = this.#records.read(ordinal - 1);
      return isDelivery(bytes, from, deliveryId);
    });
    return found ? found.ordinal - 1 : NO_SLOT;
  }

  #read(slot: number): Delivery {
    const { bytes, from, to, tail } = this.#records.read(slot);
    return decodeDelivery(bytes, from, to, tail !== NO_BODY);
  }

  #forget(slot: number): void {
    this.#index.deleteHash(this.#records.markOf(slot), placeOf(slot));
    this.#records.delete(slot);
  }
}

const NO_BODY = -1;
