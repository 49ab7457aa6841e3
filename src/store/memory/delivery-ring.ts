import type { Delivery, RecorderLimits } from "#store/store.ts";
import { Fifo } from "./fifo.ts";

type Kept = { delivery: Delivery };

/** The flight recorder's ring: the oldest finished delivery goes first, one whose work is unfinished stays. */
export class DeliveryRing {
  #kept = new Map<string, Kept>();
  // A queue of its own: finding the oldest key of a Map costs as much as the holes before it.
  #finished = new Fifo<Kept>();
  #bytes = 0;

  get size(): number {
    return this.#kept.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(delivery: Delivery, open: boolean, limits: RecorderLimits): void {
    const kept = { delivery };
    this.#kept.set(delivery.deliveryId, kept);
    this.#bytes += weigh(delivery);
    if (!open) this.#finished.push(kept);
    while (this.#kept.size > limits.entries || this.#bytes > limits.bytes) {
      const oldest = this.#finished.shift();
      if (!oldest) return;
      this.#kept.delete(oldest.delivery.deliveryId);
      this.#bytes -= weigh(oldest.delivery);
    }
  }

  /** Its work has ended: from now on it may be let go. To be called once. */
  finish(deliveryId: string): void {
    const kept = this.#kept.get(deliveryId);
    if (kept) this.#finished.push(kept);
  }

  get(deliveryId: string): Delivery | undefined {
    return this.#kept.get(deliveryId)?.delivery;
  }

  eraseBody(deliveryId: string): void {
    const kept = this.#kept.get(deliveryId);
    if (!kept) return;
    this.#bytes -= kept.delivery.body?.byteLength ?? 0;
    kept.delivery = { ...kept.delivery, body: undefined };
  }
}

// A record without its body: ids, headers and the object around them, as measured on the heap.
const RECORD_BYTES = 600;
const weigh = (delivery: Delivery): number => RECORD_BYTES + (delivery.body?.byteLength ?? 0);
