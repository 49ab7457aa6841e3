import type { CoreParts } from "#core/parts.ts";
import { sleep } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { RecordedDelivery } from "#store/store.ts";
import { type ShownDelivery, showDelivery } from "./deliveries.ts";

/** A delivery that was recorded, or whose outcome or announcement has changed. */
export type DeliveryNews = { name: "delivery.recorded" | "delivery.changed"; at: number; delivery: ShownDelivery };

export type DeliveryFollower = {
  /** Called with new deliveries and changes. All followers get the same array. */
  tell(news: readonly DeliveryNews[]): void;
  /** Called if the follower did not get some changes. */
  miss(): void;
};

/** The time for which changes are collected before they are read together. */
const COLLECT_MS = 25;
/** The same if some changes were omitted. It is longer, because clients then list all deliveries again. */
const COLLECT_AFTER_LOSS_MS = 500;
/** The most changed deliveries that wait to be read. Further changes are omitted. */
const MOST_CHANGED = 2_000;
/** The number of deliveries that are read together. Other calls run before the next page. */
const PAGE = 25;
/** The most deliveries whose last outcome is remembered, so that followers are notified of an outcome only once. */
const MOST_REMEMBERED = 10_000;

/** Notifies followers of recorded deliveries and changed outcomes, after notifications of the store. */
export class DeliveryFeed {
  readonly #parts: Pick<CoreParts, "store" | "clock" | "events" | "hide">;
  readonly #followers = new Set<DeliveryFollower>();
  readonly #outcomes = new Map<string, string>();
  readonly #closing = new AbortController();
  #changed = new Map<string, "recorded" | "outcome">();
  #hasLost = false;
  #isReading = false;

  constructor(parts: Pick<CoreParts, "store" | "clock" | "events" | "hide">) {
    this.#parts = parts;
  }

  /** Notifies the follower of all further changes. Returns a function that removes it. */
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

  /** Called if the store has a new delivery, or if the outcome of one has changed. */
  add(deliveryId: string, change: "recorded" | "outcome"): void {
    if (this.#followers.size === 0) return;
    const known = this.#changed.get(deliveryId);
    if (known === undefined && this.#changed.size >= MOST_CHANGED) this.#hasLost = true;
    else if (known !== "recorded") this.#changed.set(deliveryId, change);
    if (!this.#isReading) void this.#readAll();
  }

  /** Called if notifications of changes may have been lost. */
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
      if (!hasLost) continue;
      // An omitted outcome may differ from the remembered one: the next one must not be taken for a repetition.
      this.#outcomes.clear();
      for (const follower of this.#followers) follower.miss();
    }
    this.#isReading = false;
  }

  #newsOf(delivery: RecordedDelivery, change: "recorded" | "outcome" | undefined): DeliveryNews[] {
    const { deliveryId } = delivery;
    const outcome = shownOutcome(delivery);
    const known = this.#outcomes.get(deliveryId);
    if (known === outcome) return [];
    this.#outcomes.delete(deliveryId);
    this.#outcomes.set(deliveryId, outcome);
    const [oldest] = this.#outcomes.keys();
    if (this.#outcomes.size > MOST_REMEMBERED && oldest !== undefined) this.#outcomes.delete(oldest);
    const name = known === undefined && change === "recorded" ? "delivery.recorded" : "delivery.changed";
    const { clock, hide } = this.#parts;
    return [{ name, at: clock.now(), delivery: showDelivery(delivery, hide) }];
  }
}

/** The outcome with the state of the announcement: a change of either is pushed. */
function shownOutcome({ outcome, announcement }: RecordedDelivery): string {
  return announcement ? `${outcome} ${announcement.state} ${announcement.reason}` : outcome;
}
