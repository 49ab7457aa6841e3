import type { Clock } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Events } from "#observe/events.ts";
import type { Claim, Store } from "#store/store.ts";

/** Claims follow one another for so long before other events of the process are handled. */
const SLICE_MS = 3;
const RETRY_MS = 1_000;
const END_TRIES = 5;

const ALONE_MS = 30_000;
/** Work of a gateway that died goes on elsewhere within 15 s, and a gateway whose event loop stands still for 5 s loses nothing. */
const AMONG_OTHERS_MS = 10_000;

/** The life of a claim that is not extended. If one process has the store for itself, leases end only when that stands still. */
export function leaseMsOf({ shared }: Pick<Store, "shared">): number {
  return shared ? AMONG_OTHERS_MS : ALONE_MS;
}

type WorkerParts<W> = {
  store: Pick<Store, "durable">;
  clock: Clock;
  events: Events;
  /** Names the worker in the log. */
  name: string;
  /** Names the work: a later claim of the same work takes the place of one that was lost. */
  keyOf: (work: W) => string;
  /** Does claimed work, and ends its claim. */
  run: (work: W) => Promise<void>;
  /** Has work end soon here: its lease is lost, or the gateway stops. It goes on elsewhere. */
  giveBack: (work: W) => void;
  /** Called after each run. */
  ended?: (work: W) => void;
  queue?: Queue<W>;
  lease?: Lease<W>;
};

/** How work is claimed that others have queued: as long as there is room for it and may be more. */
type Queue<W> = {
  operation: string;
  hasRoom: () => boolean;
  claim: () => Promise<{ works: readonly W[]; mayBeMore?: boolean; nextDueInMs: number | undefined }>;
};

/** How claims are extended while work runs. `extend` answers those that do not hold any more. */
export type Lease<W> = { operation: string; ms: number; extend: (works: readonly W[]) => Promise<readonly W[]> };

/** The lease of turns and of compactions. */
export function leaseOfClaims<W extends { claim: Claim }>(store: Store): Lease<W> {
  const ms = leaseMsOf(store);
  const extend = async (works: readonly W[]): Promise<readonly W[]> => {
    const claims = works.map(({ claim }) => claim);
    const lost = await store.extendClaims(claims, ms);
    return works.filter(({ claim }) => lost.some((one) => one.turnId === claim.turnId && one.fence === claim.fence));
  };
  return { operation: "extendClaims", ms, extend };
}

/**
 * `draining`: no new work of a durable store is claimed; that of one that forgets is, as long as there is time. `stopped`: work that still
 * begins is given back at once.
 */
type WorkerState = "running" | "draining" | "stopped";

type Drain = {
  /** The time to wait until `isDone`; then the rest is given back. */
  ms: number;
  isDone?: () => boolean;
  /** Nothing runs any more, nor is about to. */
  isIdle?: () => boolean;
  /** The time to wait for what was given back; without it that is waited for. */
  lastMs?: number;
};

/**
 * Work that a store hands out under leases: it is claimed when there is news, when some is due and when there is room; its claims are extended
 * as long as it runs, and given back when the gateway stops. Turns, compactions, beats and announcements each have a worker.
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
    // Its lease ended while it ran here: the later claim has the work.
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

/** Ends a claim; a store that fails is asked again, a few times. Throws what failed last: past its lease the work is another's. */
export function keepTrying<T>(
  parts: { clock: Clock; events: Events },
  operation: string,
  end: () => Promise<T>,
  mayWait: () => boolean = () => true,
): Promise<T> {
  return end().catch((error: unknown) => tryAgain(parts, operation, end, mayWait, error));
}

async function tryAgain<T>(
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
