import { LocalRecords, newState } from "#store/local/records.ts";
import { MemoryTable } from "#store/local/tables.ts";
import { weighEntry } from "#store/local/weights.ts";
import type { Entry, GatewayEntry } from "#store/store.ts";
import { ArrayStream } from "./stream.ts";

/** The records of one memory store: all tables and streams are in memory. */
export class MemoryRecords extends LocalRecords {
  constructor() {
    const state = newState();
    const journals = new Map<number, ArrayStream<Entry>>();
    const weigh = (entry: Entry, by: 1 | -1): void => {
      state.bytes += by * weighEntry(entry);
    };
    super({
      state,
      table: (layout, changed) => new MemoryTable(layout, changed),
      live: (layout, changed) => new MemoryTable(layout, changed),
      journal: (ordinal) => {
        const journal = journals.get(ordinal) ?? new ArrayStream<Entry>(weigh);
        journals.set(ordinal, journal);
        return journal;
      },
      gateway: new ArrayStream<GatewayEntry>(() => {}),
    });
    const { deliveries, erasures } = this;
    const { put } = deliveries;
    deliveries.put = (record) => {
      const { delivery } = record;
      const { body } = delivery;
      // A body is the caller's until it is kept.
      const isCopied = body === undefined || deliveries.find(delivery.deliveryId) !== undefined;
      put(isCopied ? record : { ...record, delivery: { ...delivery, body: Buffer.from(body) } });
    };
    const { delete: endErasure } = erasures;
    erasures.delete = (ordinal) => {
      endErasure(ordinal);
      journals.delete(ordinal);
    };
  }
}
