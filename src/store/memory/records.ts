import { weighEntry } from "#store/local/layouts.ts";
import { LocalRecords, newState } from "#store/local/records.ts";
import { MemoryTable } from "#store/local/tables.ts";
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
    const { erasures } = this;
    const { delete: endErasure } = erasures;
    erasures.delete = (ordinal) => {
      endErasure(ordinal);
      journals.delete(ordinal);
    };
  }
}
