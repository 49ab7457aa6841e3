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
  /** How work is claimed that others have queued: as long as there is room for it and may be more. */
  queue?: {
    operation: string;
    hasRoom: () => boolean;
    claim: () => Promise<{ works: readonly W[]; mayBeMore?: boolean; nextDueInMs: number | undefined }>;
  };
  lease?: Lease<W>;
};

/** How claims are extended while work runs. `extend` answers those that do not hold any more. */
type Lease<W> = { operation: string; ms: number; extend: (works: readonly W[]) => Promise<readonly W[]> };

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

export type Worker<W> = {
  /** There may be work to claim, or room for it. */
  wake(): void;
  /** The same in so long; a time that is sooner stays. */
  wakeIn(ms?: number): void;
  /** Runs work that was claimed. */
  begin(work: W): void;
  get(key: string): W | undefined;
  /** A copy of all that runs. */
  all(): W[];
  /** There may be work that was not claimed yet, for want of time or of room. */
  isBehind(): boolean;
  state(): WorkerState;
  /** Lets work go on for some time, then gives back the rest; answers how much that was. */
  drain(drain: Drain): Promise<number>;
};

/**
 * Work that a store hands out under leases: it is claimed when there is news, when some is due and when there is room; its claims are extended
 * as long as it runs, and given back when the gateway stops. Turns, compactions, beats and announcements are each a worker's.
 */
export function createWorker<W>(parts: WorkerParts<W>): Worker<W> {
  const { clock, events, keyOf, queue, lease } = parts;
  const held = new Map<string, W>();
  let state: WorkerState = "running";
  let running = 0;
  let isWanted = false;
  let isClaiming = false;
  let dueAt = Number.POSITIVE_INFINITY;
  let stopDue = (): void => {};
  let stopExtending: (() => void) | undefined;
  /** Looks whether a drain is over, after each run and each claim. */
  let checkDrained = (): void => {};

  const wakeAfter = (ms: number): void => {
    stopDue();
    dueAt = clock.monotonic() + ms;
    if (ms === Number.POSITIVE_INFINITY) return;
    stopDue = clock.after(ms, () => {
      dueAt = Number.POSITIVE_INFINITY;
      wake();
    });
  };
  const wake = (): void => {
    isWanted = true;
    if (isClaiming || !queue) return;
    isClaiming = true;
    queueMicrotask(() => claimAll(queue));
  };
  const mayClaim = (hasRoom: () => boolean): boolean =>
    (state === "running" || (state === "draining" && !parts.store.durable)) && hasRoom();
  const claimAll = async ({ operation, hasRoom, claim }: NonNullable<typeof queue>): Promise<void> => {
    try {
      for (let began = clock.monotonic(); isWanted && mayClaim(hasRoom); ) {
        if (clock.monotonic() - began >= SLICE_MS) {
          await yieldToOthers();
          began = clock.monotonic();
          continue;
        }
        isWanted = false;
        const { works, mayBeMore = false, nextDueInMs = Number.POSITIVE_INFINITY } = await claim();
        for (const work of works) begin(work);
        isWanted ||= mayBeMore;
        wakeAfter(nextDueInMs);
      }
    } catch (error) {
      events.storeFailed({ operation, error });
      wakeAfter(RETRY_MS);
    } finally {
      isClaiming = false;
      checkDrained();
    }
  };

  const begin = (work: W): void => {
    running++;
    const key = keyOf(work);
    const before = held.get(key);
    // Its lease ended while it ran here: it has lost the work to the later claim.
    if (before !== undefined) parts.giveBack(before);
    held.set(key, work);
    if (state === "stopped") parts.giveBack(work);
    if (lease) stopExtending ??= clock.after(lease.ms / 3, () => extendAll(lease));
    parts.run(work).then(
      () => leave(work),
      (error: unknown) => {
        events.unexpectedError({ error, where: parts.name });
        leave(work);
      },
    );
  };
  const leave = (work: W): void => {
    running--;
    const key = keyOf(work);
    if (held.get(key) === work) held.delete(key);
    parts.ended?.(work);
    checkDrained();
  };

  const extendAll = (of: Lease<W>): void => {
    const { operation, ms, extend } = of;
    stopExtending = held.size > 0 ? clock.after(ms / 3, () => extendAll(of)) : undefined;
    if (held.size === 0) return;
    extend([...held.values()]).then(
      (lost) => {
        for (const work of lost) parts.giveBack(work);
      },
      (error: unknown) => {
        events.storeFailed({ operation, error });
        stopExtending?.();
        stopExtending = clock.after(ms / 12, () => extendAll(of));
      },
    );
  };

  const until = (isSo: () => boolean, ms: number): Promise<void> =>
    new Promise((resolve) => {
      const stopWaiting = clock.after(ms, resolve);
      checkDrained = () => {
        if (isClaiming || !isSo()) return;
        stopWaiting();
        resolve();
      };
      checkDrained();
    });

  return {
    wake,
    wakeIn: (ms = 0) => {
      // A claim that is under way says when it is due again, and may not know of this yet.
      if (ms <= 0 || isClaiming) wake();
      else if (clock.monotonic() + ms < dueAt) wakeAfter(ms);
    },
    begin,
    get: (key) => held.get(key),
    all: () => [...held.values()],
    isBehind: () => isClaiming || isWanted,
    state: () => state,
    async drain({ ms, isIdle = () => running === 0, isDone = isIdle, lastMs = Number.POSITIVE_INFINITY }) {
      state = "draining";
      if (ms > 0) await until(isDone, ms);
      state = "stopped";
      const left = [...held.values()];
      for (const work of left) parts.giveBack(work);
      await until(isIdle, lastMs);
      stopDue();
      stopExtending?.();
      return left.length;
    },
  };
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
