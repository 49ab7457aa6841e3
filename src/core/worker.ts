import type { Clock } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Events } from "#observe/events.ts";
import type { Claim, OutgoingClaim, Store } from "#store/store.ts";

/** The longest time of consecutive claims before other events of the process are handled. */
const SLICE_MS = 3;
const RETRY_MS = 1_000;
const END_TRIES = 5;

const ONE_PROCESS_MS = 30_000;
/** Another gateway continues the work of a dead one within 15 s. A gateway whose event loop is blocked for 5 s loses no work. */
const SHARED_MS = 10_000;

/** The duration of a lease. Without a shared store, leases end only if the process is blocked. */
export function leaseMsOf({ shared }: Pick<Store, "shared">): number {
  return shared ? SHARED_MS : ONE_PROCESS_MS;
}

type WorkerParts<W> = {
  store: Pick<Store, "durable">;
  clock: Clock;
  events: Events;
  /** Names the worker in the log. */
  name: string;
  /** The key of the work. A later claim of the same work replaces a lost one. */
  keyOf: (work: W) => string;
  /** Does the claimed work, and ends its claim. */
  run: (work: W) => Promise<void>;
  /** Makes work end soon, because its lease was lost or the gateway stops. Another gateway may continue it. */
  giveBack: (work: W) => void;
  /** Called after each run. */
  ended?: (work: W) => void;
  queue?: Queue<W>;
  lease?: Lease<W>;
};

/** The claims of queued work. They continue while `hasRoom` returns true and there may be more work. */
type Queue<W> = {
  operation: string;
  hasRoom: () => boolean;
  claim: () => Promise<{ works: readonly W[]; mayBeMore?: boolean; nextDueInMs: number | undefined }>;
};

/** The leases of running work. `extend` returns the work whose lease was lost. */
export type Lease<W> = { operation: string; ms: number; extend: (works: readonly W[]) => Promise<readonly W[]> };

/** The lease of turns and of outgoing messages. */
export function leaseOfClaims<W extends { claim: Claim | OutgoingClaim }>(store: Store): Lease<W> {
  const ms = leaseMsOf(store);
  const extend = async (works: readonly W[]): Promise<readonly W[]> => {
    const claims = works.map(({ claim }) => claim);
    const lost = await store.extendClaims(claims, ms);
    return works.filter(({ claim }) => lost.some((one) => idOf(one) === idOf(claim) && one.fence === claim.fence));
  };
  return { operation: "extendClaims", ms, extend };
}

function idOf(claim: Claim | OutgoingClaim): string {
  return "id" in claim ? claim.id : claim.turnId;
}

/**
 * `draining`: no new work of a durable store is claimed. Work of a store in memory is claimed while there is time. `stopped`: work that still
 * starts is given back at once.
 */
type WorkerState = "running" | "draining" | "stopped";

type Drain = {
  /** The longest wait for `isDone`. Then the rest is given back. */
  ms: number;
  isDone?: () => boolean;
  /** True if no work runs or is about to start. */
  isIdle?: () => boolean;
  /** The longest wait for work that was given back. Without it, the wait has no limit. */
  lastMs?: number;
};

/**
 * Runs work that a store assigns with leases. It claims work after a notification, when work is due and when there is room, extends the leases
 * while the work runs, and gives the work back when the gateway stops. Turns, outgoing messages and due beats each have a worker.
 */
export class Worker<W> {
  readonly #parts: WorkerParts<W>;
  readonly #held = new Map<string, W>();
  #state: WorkerState = "running";
  #running = 0;
  #isWanted = false;
  #isClaiming = false;
  #dueAt = Number.POSITIVE_INFINITY;
  #stopDue = (): void => {};
  #stopExtending: (() => void) | undefined;
  /** Checks whether a drain is over. Called after each run and each claim. */
  #checkDrained = (): void => {};

  constructor(parts: WorkerParts<W>) {
    this.#parts = parts;
  }

  /** True if there may be work that was not claimed yet, for lack of time or room. */
  isBehind(): boolean {
    return this.#isClaiming || this.#isWanted;
  }

  /** True if there may be work that the current claim does not include. */
  isWanted(): boolean {
    return this.#isWanted;
  }

  state(): WorkerState {
    return this.#state;
  }

  /** Claims work: there may be some, or room for it. */
  wake(): void {
    const { queue } = this.#parts;
    this.#isWanted = true;
    if (this.#isClaiming || !queue) return;
    this.#isClaiming = true;
    queueMicrotask(() => this.#claimAll(queue));
  }

  /** Claims work after this time, or at the time that is already set if that is earlier. */
  wakeIn(ms = 0): void {
    // A claim that is under way sets the next time, and may not know of this work yet.
    if (ms <= 0 || this.#isClaiming) this.wake();
    else if (this.#parts.clock.monotonic() + ms < this.#dueAt) this.#wakeAfter(ms);
  }

  /** Runs work that was claimed. */
  begin(work: W): void {
    const { clock, events, keyOf, giveBack, lease, name } = this.#parts;
    this.#running++;
    const key = keyOf(work);
    const before = this.#held.get(key);
    // The lease of the earlier claim ended while its work ran here. The new claim replaces it.
    if (before !== undefined) giveBack(before);
    this.#held.set(key, work);
    if (this.#state === "stopped") giveBack(work);
    if (lease) this.#stopExtending ??= clock.after(lease.ms / 3, () => this.#extendAll(lease));
    this.#parts.run(work).then(
      () => this.#leave(work),
      (error: unknown) => {
        events.unexpectedError({ error, where: name });
        this.#leave(work);
      },
    );
  }

  get(key: string): W | undefined {
    return this.#held.get(key);
  }

  /** A copy of the list of all running work. */
  all(): W[] {
    return [...this.#held.values()];
  }

  /** Lets work continue for some time, then gives the rest back. Returns the number that was given back. */
  async drain(drain: Drain): Promise<number> {
    const { ms, isIdle = () => this.#running === 0, isDone = isIdle, lastMs = Number.POSITIVE_INFINITY } = drain;
    this.#state = "draining";
    if (ms > 0) await this.#until(isDone, ms);
    this.#state = "stopped";
    const left = this.all();
    for (const work of left) this.#parts.giveBack(work);
    await this.#until(isIdle, lastMs);
    this.#stopDue();
    this.#stopExtending?.();
    return left.length;
  }

  #wakeAfter(ms: number): void {
    const { clock } = this.#parts;
    this.#stopDue();
    this.#dueAt = clock.monotonic() + ms;
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#stopDue = clock.after(ms, () => {
      this.#dueAt = Number.POSITIVE_INFINITY;
      this.wake();
    });
  }

  #mayClaim({ hasRoom }: Queue<W>): boolean {
    const isTaking = this.#state === "running" || (this.#state === "draining" && !this.#parts.store.durable);
    return isTaking && hasRoom();
  }

  async #claimAll(queue: Queue<W>): Promise<void> {
    const { clock, events } = this.#parts;
    try {
      for (let began = clock.monotonic(); this.#isWanted && this.#mayClaim(queue); ) {
        if (clock.monotonic() - began >= SLICE_MS) {
          await yieldToOthers();
          began = clock.monotonic();
          continue;
        }
        this.#isWanted = false;
        const { works, mayBeMore = false, nextDueInMs = Number.POSITIVE_INFINITY } = await queue.claim();
        for (const work of works) this.begin(work);
        this.#isWanted ||= mayBeMore;
        this.#wakeAfter(nextDueInMs);
      }
    } catch (error) {
      events.storeFailed({ operation: queue.operation, error });
      this.#wakeAfter(RETRY_MS);
    } finally {
      this.#isClaiming = false;
      this.#checkDrained();
    }
  }

  #leave(work: W): void {
    const { keyOf, ended } = this.#parts;
    this.#running--;
    const key = keyOf(work);
    if (this.#held.get(key) === work) this.#held.delete(key);
    ended?.(work);
    this.#checkDrained();
  }

  #extendAll(lease: Lease<W>): void {
    const { clock, events, giveBack } = this.#parts;
    const { operation, ms, extend } = lease;
    this.#stopExtending = this.#held.size > 0 ? clock.after(ms / 3, () => this.#extendAll(lease)) : undefined;
    if (this.#held.size === 0) return;
    extend(this.all()).then(
      (lost) => {
        for (const work of lost) giveBack(work);
      },
      (error: unknown) => {
        events.storeFailed({ operation, error });
        this.#stopExtending?.();
        this.#stopExtending = clock.after(ms / 12, () => this.#extendAll(lease));
      },
    );
  }

  /** Resolves when `isDrained` returns true and no claim is under way, or after `ms`. */
  #until(isDrained: () => boolean, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stopWaiting = this.#parts.clock.after(ms, resolve);
      this.#checkDrained = () => {
        if (this.#isClaiming || !isDrained()) return;
        stopWaiting();
        resolve();
      };
      this.#checkDrained();
    });
  }
}

/** Ends a claim, with a few retries if the store fails. Throws the last error: after its lease, another gateway may have the work. */
export function keepTrying<T>(
  parts: { clock: Clock; events: Events },
  operation: string,
  end: () => Promise<T>,
  mayWait: () => boolean = () => true,
): Promise<T> {
  return end().catch((error: unknown) => retry(parts, operation, end, mayWait, error));
}

async function retry<T>(
  { clock, events }: { clock: Clock; events: Events },
  operation: string,
  end: () => Promise<T>,
  mayWait: () => boolean,
  first: unknown,
): Promise<T> {
  let error = first;
  for (let tries = 1; ; tries++) {
    events.storeFailed({ operation, error });
    if (tries === END_TRIES || !mayWait()) throw error;
    await new Promise<void>((resolve) => clock.after(200 * 2 ** tries, resolve));
    try {
      return await end();
    } catch (next) {
      error = next;
    }
  }
}
