import type { Clock } from "#kit/clock.ts";
import type { GatewayEntry, GatewayNews, Store } from "#store/store.ts";
import { Stream } from "./follow.ts";

/** The most entries that the stream stores, and the time for which it stores them. */
export const GATEWAY_STORED_ENTRIES = 10_000;
export const GATEWAY_RETENTION_MS = 24 * 3_600_000;

/** The stream of the gateway's own events. */
export class GatewayStream extends Stream<GatewayEntry> {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor({ store, clock }: { store: Store; clock: Clock }) {
    super();
    this.#store = store;
    this.#clock = clock;
  }

  /** Identifies the content of the stream. It changes if the store is replaced or emptied. */
  get epoch(): string {
    return this.#store.epoch;
  }

  get isFollowed(): boolean {
    return this.followers.size > 0;
  }

  append(news: GatewayNews): Promise<GatewayEntry> {
    return this.#store.appendGatewayEntry(news, { now: this.#clock.now(), keep: GATEWAY_STORED_ENTRIES });
  }

  /** `first` is the `seq` of the oldest stored entry (`last + 1` if none is stored), `last` is the `seq` of the newest entry ever (0 before the first). */
  async place(): Promise<{ first: number; last: number }> {
    const { first, last } = await this.#store.readGatewayEntries({ after: 0, limit: 0 });
    return { first, last };
  }

  async read(after: number, limit: number): Promise<readonly GatewayEntry[]> {
    return (await this.#store.readGatewayEntries({ after, limit })).entries;
  }
}
