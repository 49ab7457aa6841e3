import { Ordered } from "#store/live/ordered.ts";
import { weighDelivery } from "#store/live/weights.ts";
import type { DeliveryRecord, Records } from "#store/rules/records.ts";

type Shelf = { size: number; bytes: number; ended: Ordered<number, DeliveryRecord> };

const newShelf = (): Shelf => ({ size: 0, bytes: 0, ended: new Ordered() });

export class Deliveries {
  readonly #byId = new Map<string, DeliveryRecord>();
  readonly #byPlace = new Ordered<number, DeliveryRecord>();
  readonly #refused = newShelf();
  readonly #others = newShelf();

  get size(): number {
    return this.#byId.size;
  }

  get bytes(): number {
    return this.#refused.bytes + this.#others.bytes;
  }

  readonly records: Records["deliveries"] = {
    find: (deliveryId) => this.#byId.get(deliveryId),
    put: (record) => {
      const { deliveryId, body } = record.delivery;
      const before = this.#byId.get(deliveryId);
      // A body is the caller's until it is kept.
      const isCopied = before !== undefined || body === undefined;
      const kept = isCopied ? record : { ...record, delivery: { ...record.delivery, body: Buffer.from(body) } };
      this.#move(before, kept);
      this.#byId.set(deliveryId, kept);
      this.#byPlace.set(kept.place, kept);
    },
    delete: ({ delivery: { deliveryId }, place }) => {
      this.#move(this.#byId.get(deliveryId), undefined);
      this.#byId.delete(deliveryId);
      this.#byPlace.delete(place);
    },
    shelf: (isRefused) => (isRefused ? this.#refused : this.#others),
    firstEnded: (isRefused) => (isRefused ? this.#refused : this.#others).ended.first(),
    before: (place, limit) => this.#byPlace.before(place, limit),
  };

  #move(from: DeliveryRecord | undefined, to: DeliveryRecord | undefined): void {
    // Most that are put again have only ended.
    const isSame = from !== undefined && from.delivery === to?.delivery;
    if (from) {
      const shelf = this.#shelfOf(from);
      shelf.size--;
      if (!isSame) shelf.bytes -= weighDelivery(from);
      if (from.endedOrder !== undefined) shelf.ended.delete(from.endedOrder);
    }
    if (to) {
      const shelf = this.#shelfOf(to);
      shelf.size++;
      if (!isSame) shelf.bytes += weighDelivery(to);
      if (to.endedOrder !== undefined) shelf.ended.set(to.endedOrder, to);
    }
  }

  #shelfOf({ delivery }: DeliveryRecord): Shelf {
    return delivery.answer === "refused" ? this.#refused : this.#others;
  }
}
