import type { Delivery } from "#store/store.ts";
import type { PackedWriter } from "./packed.ts";
import { PackedReader } from "./packed-reader.ts";
import { NO_SLOT, NO_TAIL, type RecordSegments } from "./record-segments.ts";

/** What a client says again with each of its requests. */
export type RecordedHead = Pick<Delivery, "operation" | "method" | "path" | "address" | "caller" | "headers">;

export const encodeHead = (writer: PackedWriter, head: RecordedHead): void => {
  writer.text(head.operation);
  writer.text(head.method);
  writer.text(head.path);
  writer.text(head.address);
  writer.text(head.caller);
  writer.text(head.headers);
};

/** With `isShort` the headers are left out. */
export const decodeHead = (reader: PackedReader, isShort: boolean): RecordedHead => {
  const operation = reader.text();
  const method = reader.text();
  const path = reader.text();
  const address = reader.text();
  const caller = reader.text();
  const headers = isShort ? "" : reader.text();
  return { operation, method, path, address, caller, headers };
};

/** So many heads are looked for among what comes. */
const PLACES = 64;

/** `slot` is where it is kept, once it was seen a second time. */
type Place = { readonly head: RecordedHead; slot: number };

/** Heads that came again lately, each kept once for all deliveries that have it. */
export class RecordedHeads {
  readonly #records: RecordSegments;
  readonly #places: (Place | undefined)[] = new Array(PLACES).fill(undefined);

  constructor(records: RecordSegments) {
    this.#records = records;
  }

  /** Where the delivery's head is kept, which counts for one more; NO_SLOT when it was not there before and has to be kept with it. */
  keep(delivery: Delivery): number {
    const { headers, path, caller } = delivery;
    const at = (headers.length + path.length * 7 + caller.length * 31) % PLACES;
    const place = this.#places[at];
    if (place === undefined || !isSame(place.head, delivery)) {
      if (place !== undefined && place.slot !== NO_SLOT) this.release(place.slot);
      const { operation, method, address } = delivery;
      this.#places[at] = { head: { operation, method, path, address, caller, headers }, slot: NO_SLOT };
      return NO_SLOT;
    }
    if (place.slot === NO_SLOT) {
      encodeHead(this.#records.begin(), delivery);
      // The place itself has a share in it.
      place.slot = this.#records.add(NO_TAIL, 1);
    }
    this.#records.setMark(place.slot, this.#records.markOf(place.slot) + 1);
    return place.slot;
  }

  release(slot: number): void {
    const shares = this.#records.markOf(slot) - 1;
    if (shares === 0) this.#records.delete(slot);
    else this.#records.setMark(slot, shares);
  }

  read(slot: number, isShort: boolean): RecordedHead {
    const { bytes, from } = this.#records.read(slot);
    return decodeHead(new PackedReader(bytes, from), isShort);
  }
}

const isSame = (head: RecordedHead, delivery: Delivery): boolean =>
  head.headers === delivery.headers &&
  head.path === delivery.path &&
  head.caller === delivery.caller &&
  head.operation === delivery.operation &&
  head.address === delivery.address &&
  head.method === delivery.method;
