import type { CoreParts } from "#core/parts.ts";
import { sleep } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { DeliveryOutcome, RecordedDelivery } from "#store/store.ts";
import { type ShownDelivery, showDelivery } from "./deliveries.ts";

/** A delivery that was recorded, or that has another outcome. */
export type DeliveryNews = { name: "delivery.recorded" | "delivery.changed"; at: number; delivery: ShownDelivery };

export type DeliveryFollower = {
  /** All followers get the same array. */
  tell(news: readonly DeliveryNews[]): void;
  /** Some changes were left out. */
  miss(): void;
};

/** The time in which changes are collected, to be read together. */
const COLLECT_MS = 25;
/** The same after some were left out: each time the clients list the deliveries again. */
const COLLECT_AFTER_LOSS_MS = 500;
/** Changed deliveries that wait to be read. Further ones are left out. */
const MOST_CHANGED = 2_000;
/** Deliveries that are read and told together. Other calls run before the next. */
const PAGE = 25;
/** Deliveries whose last outcome is remembered: it is told once. */
const MOST_REMEMBERED = 10_000;

/** Tells followers of recorded deliveries and of their outcomes, by the news of the store. */
export class DeliveryFeed {
  readonly #parts: Pick<CoreParts, "store" | "clock" | "events">;
  readonly #followers = new Set<DeliveryFollower>();
  readonly #outcomes = new Map<string, DeliveryOutcome>();
  readonly #closing = new AbortController();
  #changed = new Map<string, "recorded" | "outcome">();
  #hasLost = false;
  #isReading = false;

  constructor(parts: Pick<CoreParts, "store" | "clock" | "events">) {
    this.#parts = parts;
  }

  /** The follower is told of all changes from now on. The returned function ends that. */
  follow(follower: DeliveryFollower): () => void {
    this.#followers.add(follower);
    return () => {
      this.#followers.delete(follower);
      if (this.#followers.size === 0) this.#outcomes.clear();
    };
  }

  close(): void {
    this.#followers.clear();
    this.#closing.abort();
  }

  /** The store has a new delivery, or another outcome of one. */
  add(deliveryId: string, change: "recorded" | "outcome"): void {
    if (this.#followers.size === 0) return;
    const known = this.#changed.get(deliveryId);
    if (known === undefined && this.#changed.size >= MOST_CHANGED) this.#hasLost = true;
    else if (known !== "recorded") this.#changed.set(deliveryId, change);
    if (!this.#isReading) void this.#readAll();
  }

  /** Some changes did not arrive here. */
  lose(): void {
    if (this.#followers.size === 0) return;
    this.#hasLost = true;
    if (!this.#isReading) void this.#readAll();
  }

  async #readAll(): Promise<void> {
    const { store, clock, events } = this.#parts;
    this.#isReading = true;
    while (this.#changed.size > 0 || this.#hasLost) {
      await sleep(clock, this.#hasLost ? COLLECT_AFTER_LOSS_MS : COLLECT_MS, this.#closing.signal);
      const [changed, hasLost] = [this.#changed, this.#hasLost];
      this.#changed = new Map();
      this.#hasLost = false;
      const ids = [...changed.keys()];
      try {
        while (ids.length > 0 && this.#followers.size > 0) {
          const found = await store.readDeliveries(ids.splice(0, PAGE));
          await yieldToOthers();
          const news = found.flatMap((delivery) => this.#newsOf(delivery, changed.get(delivery.deliveryId)));
          for (const follower of this.#followers) follower.tell(news);
        }
      } catch (error) {
        events.storeFailed({ operation: "readDeliveries", error });
        this.#hasLost = this.#followers.size > 0;
      }
      if (hasLost) for (const follower of this.#followers) follower.miss();
    }
    this.#isReading = false;
  }

  #newsOf(delivery: RecordedDelivery, change: "recorded" | "outcome" | undefined): DeliveryNews[] {
    const { deliveryId, outcome } = delivery;
    const known = this.#outcomes.get(deliveryId);
    if (known === outcome) return [];
    this.#outcomes.delete(deliveryId);
    this.#outcomes.set(deliveryId, outcome);
    const [oldest] = this.#outcomes.keys();
    if (this.#outcomes.size > MOST_REMEMBERED && oldest !== undefined) this.#outcomes.delete(oldest);
    const name = known === undefined && change === "recorded" ? "delivery.recorded" : "delivery.changed";
    return [{ name, at: this.#parts.clock.now(), delivery: showDelivery(delivery) }];
  }
}
