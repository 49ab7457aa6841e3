import { setImmediate as nextTick } from "node:timers/promises";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";

/** Claims follow one another for so long before other events of the process are handled. */
const SLICE_MS = 3;
const RETRY_MS = 1_000;
const END_TRIES = 5;

const ALONE_MS = 30_000;
/** Work of a gateway that died goes on elsewhere within 15 s, and a gateway whose event loop stands still for 5 s loses nothing. */
const AMONG_OTHERS_MS = 10_000;

/** The life of a claim that is not extended. If one process has the store for itself, leases end only when that stands still. */
export const leaseMsOf = ({ shared }: Pick<Store, "shared">): number => (shared ? AMONG_OTHERS_MS : ALONE_MS);

type WorkerParts<W, R> = {
  clock: Clock;
  events: Events;
  /** Names the worker in the log. */
  name: string;
  /** Names the work: a later claim of the same work takes the place of one that was lost. */
  keyOf: (work: W) => string;
  /** Does claimed work, and ends its claim. */
  run: (work: W) => Promise<R>;
  /** Called after each run; without a result where it failed. */
  ended?: (work: W, result: R | undefined) => void;
  /** How work is claimed that others have queued. Each is called as long as `mayClaim` says so and there may be more. */
  queue?: {
    operation: string;
    mayClaim: () => boolean;
    claim: () => Promise<{ works: readonly W[]; mayBeMore: boolean; nextDueInMs: number | undefined }>;
  };
  /** How claims are extended while work runs. `extend` answers those that do not hold any more. */
  lease?: {
    operation: string;
    ms: number;
    extend: (works: readonly W[]) => Promise<readonly W[]>;
    lost: (work: W) => void;
  };
};

export type Worker<W> = {
  /** There may be work to claim, or room for it. */
  wake(): void;
  /** The same in so long; a time that is sooner stays. */
  wakeIn(ms: number): void;
  /** Runs work that was claimed. */
  begin(work: W): void;
  get(key: string): W | undefined;
  /** A copy of all that runs. */
  all(): W[];
  /** Nothing runs, and nothing is being claimed. */
  isIdle(): boolean;
  isClaiming(): boolean;
  /** There may be work that was not claimed yet, for want of time or of room. */
  isBehind(): boolean;
  /** Resolves when `isSo`, which is looked at after each run and each claim, or after `ms`. */
  until(isSo: () => boolean, ms: number): Promise<void>;
  /** Wakes by itself no more. */
  stop(): void;
};

/**
 * Work that a store hands out under leases: it is claimed when there is news, when some is due and when there is room; its claims are extended
 * as long as it runs. Turns, compactions, beats and announcements are each a worker's.
 */
export const createWorker = <W, R = void>(parts: WorkerParts<W, R>): Worker<W> => {
  const { clock, events, keyOf, run, ended, queue, lease } = parts;
  const held = new Map<string, W>();
  let running = 0;
  let isWanted = false;
  let isClaiming = false;
  let dueAt = Number.POSITIVE_INFINITY;
  let stopDue = (): void => {};
  let stopExtending: (() => void) | undefined;
  const waiting = new Set<() => void>();
  const tellWaiting = (): void => {
    for (const look of waiting) look();
  };

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
    queueMicrotask(claimAll);
  };
  const claimAll = async (): Promise<void> => {
    const { operation, mayClaim, claim } = queue as NonNullable<typeof queue>;
    try {
      for (let began = clock.monotonic(); isWanted && mayClaim(); ) {
        if (clock.monotonic() - began >= SLICE_MS) {
          await nextTick();
          began = clock.monotonic();
          continue;
        }
        isWanted = false;
        const { works, mayBeMore, nextDueInMs = Number.POSITIVE_INFINITY } = await claim();
        for (const work of works) begin(work);
        isWanted ||= mayBeMore;
        wakeAfter(nextDueInMs);
      }
    } catch (error) {
      events.storeFailed({ operation, error });
      wakeAfter(RETRY_MS);
    } finally {
      isClaiming = false;
      tellWaiting();
    }
  };

  const begin = (work: W): void => {
    running++;
    const key = keyOf(work);
    const before = held.get(key);
    // Its lease ended while it ran here: it has lost the work to the later claim.
    if (before !== undefined) lease?.lost(before);
    held.set(key, work);
    if (lease) stopExtending ??= clock.after(lease.ms / 3, extendAll);
    run(work).then(
      (result) => leave(work, result),
      (error: unknown) => {
        events.unexpectedError({ error, where: parts.name });
        leave(work, undefined);
      },
    );
  };
  const leave = (work: W, result: R | undefined): void => {
    running--;
    const key = keyOf(work);
    if (held.get(key) === work) held.delete(key);
    ended?.(work, result);
    if (waiting.size > 0) tellWaiting();
  };

  const extendAll = (): void => {
    const { operation, ms, extend, lost } = lease as NonNullable<typeof lease>;
    stopExtending = held.size > 0 ? clock.after(ms / 3, extendAll) : undefined;
    if (held.size === 0) return;
    extend([...held.values()]).then(
      (works) => {
        for (const work of works) lost(work);
      },
      (error: unknown) => {
        events.storeFailed({ operation, error });
        stopExtending?.();
        stopExtending = clock.after(ms / 12, extendAll);
      },
    );
  };

  return {
    wake,
    wakeIn: (ms) => {
      // A claim that is under way says when it is due again, and may not know of this yet.
      if (ms <= 0 || isClaiming) wake();
      else if (clock.monotonic() + ms < dueAt) wakeAfter(ms);
    },
    begin,
    get: (key) => held.get(key),
    all: () => [...held.values()],
    isIdle: () => running === 0 && !isClaiming,
    isClaiming: () => isClaiming,
    isBehind: () => isClaiming || isWanted,
    until: (isSo, ms) =>
      new Promise((resolve) => {
        const stopWaiting = clock.after(ms, () => done());
        const done = () => {
          stopWaiting();
          waiting.delete(look);
          resolve();
        };
        const look = () => {
          if (isSo()) done();
        };
        waiting.add(look);
        look();
      }),
    stop: () => {
      stopDue();
      stopExtending?.();
    },
  };
};

/** Ends a claim; a store that fails is asked again, a few times. Throws what failed last: past its lease the work is another's. */
export const keepTrying = async <T>(
  { clock, events }: { clock: Clock; events: Events },
  operation: string,
  end: () => T | Promise<T>,
  mayWait: () => boolean = () => true,
): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      return await end();
    } catch (error) {
      events.storeFailed({ operation, error });
      if (tries === END_TRIES || !mayWait()) throw error;
      await new Promise<void>((resolve) => clock.after(200 * 2 ** tries, resolve));
    }
  }
};
