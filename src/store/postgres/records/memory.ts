import type { StorePolicy } from "#store/policy.ts";
import type { Bookmarks } from "#store/rules/records.ts";
import type { Key } from "#store/tables/table.ts";
import { newBookmarks, newState } from "#store/tables/table-records.ts";

/** The number of records of a table that are remembered. */
const REMEMBERED = 5_000;

/**
 * The memory of a process between transactions: the bookmarks of the rules, and the last known state and records. Other gateways
 * may have changed them since, so guesses decide only what the first pass of a transaction loads.
 */
export class Memory {
  readonly bookmarks: Bookmarks = newBookmarks();
  /** The last known state, as JSON. */
  state = JSON.stringify(newState());
  readonly #tables = new Map<object, Map<Key, object>>();

  configure(policy: StorePolicy): void {
    Object.assign(this.bookmarks, { policy });
  }

  guess(layout: object, key: Key): object | undefined {
    return this.#tables.get(layout)?.get(key);
  }

  /** Remembers a record, or that it was deleted. */
  learn(layout: object, key: Key, record: object | undefined): void {
    const records = this.#tables.get(layout) ?? new Map<Key, object>();
    this.#tables.set(layout, records);
    records.delete(key);
    if (record) records.set(key, record);
    const [oldest] = records.size > REMEMBERED ? records.keys() : [];
    if (oldest !== undefined) records.delete(oldest);
  }
}
