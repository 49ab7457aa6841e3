import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import type { Chunk } from "./backend.ts";

/** So many failures in a row, with no answer between them, open it. */
const FAILURES = 5;
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 60_000;
/** While one call tries it. */
const LOOK_AGAIN_MS = 1_000;

/** How a call went that the breaker let through. `unknown`: nobody waited for its end. */
export type Verdict = "answered" | "failed" | "unknown";

export type Breaker = {
  /** How long it is left alone from now on, in milliseconds; 0: it may be asked. Looking changes nothing. */
  restMs(): number;
  /** How long nothing is asked of it, in milliseconds; 0: it may be asked now, and `tell` has to hear once how that went. */
  wait(): number;
  tell(verdict: Verdict, retryAfterMs?: number): void;
};

/**
 * Spares a remote that fails, and those who would wait for it. After several failures in a row it is left alone for a while, each time twice as long;
 * then one call tries it, and the others wait for how that goes.
 */
export const createBreaker = (clock: Clock): Breaker => {
  let failures = 0;
  let nextMs = FIRST_REST_MS;
  let opensAt: number | undefined;
  let isTried = false;
  const restMs = (): number => {
    if (opensAt === undefined) return 0;
    const left = opensAt - clock.monotonic();
    if (left > 0) return left;
    return isTried ? LOOK_AGAIN_MS : 0;
  };
  return {
    restMs,
    wait() {
      const left = restMs();
      if (left === 0 && opensAt !== undefined) isTried = true;
      return left;
    },
    tell(verdict, retryAfterMs = 0) {
      isTried = false;
      if (verdict === "unknown") return;
      if (verdict === "answered") {
        failures = 0;
        nextMs = FIRST_REST_MS;
        opensAt = undefined;
        return;
      }
      // Those that were under way when it opened tell nothing new.
      if (++failures < FAILURES || (opensAt !== undefined && opensAt > clock.monotonic())) return;
      opensAt = clock.monotonic() + Math.max(nextMs, Math.min(retryAfterMs, LONGEST_REST_MS));
      nextMs = Math.min(nextMs * 2, LONGEST_REST_MS);
    },
  };
};

/** What a failure says of the remote: one that another try would not change says that it is there. */
export const verdictOf = (error: unknown, signal: Pick<AbortSignal, "aborted" | "reason">): Verdict => {
  if (signal.aborted) return signal.reason === "no-answer" || signal.reason === "silence" ? "failed" : "unknown";
  return error instanceof BackendError && !error.retryable ? "answered" : "failed";
};

/** What a turn is told that a breaker keeps back. */
export const keptBack = (who: string, waitMs: number): BackendError =>
  new BackendError(`${who} has failed several times in a row, and is left alone for a while`, {
    retryable: true,
    retryAfterMs: Math.ceil(waitMs),
  });

/** The reply of a remote that a breaker spares. It stops at `outer`, and as soon as nobody reads it. */
export async function* guarded(
  breaker: Breaker,
  who: string,
  outer: StopSignal,
  reply: (signal: AbortSignal) => AsyncIterable<Chunk>,
  asFailure: (thrown: unknown) => unknown = (thrown) => thrown,
): AsyncGenerator<Chunk, void> {
  outer.throwIfAborted();
  const waitMs = breaker.wait();
  if (waitMs > 0) throw keptBack(who, waitMs);
  const inner = new AbortController();
  const stop = () => inner.abort(outer.reason);
  outer.addEventListener("abort", stop, { once: true });
  let isWhole = false;
  let verdict: Verdict | undefined;
  let retryAfterMs: number | undefined;
  try {
    yield* reply(inner.signal);
    isWhole = true;
    verdict = "answered";
  } catch (thrown) {
    const error = outer.aborted ? outer.reason : asFailure(thrown);
    verdict = verdictOf(error, outer);
    if (error instanceof BackendError) retryAfterMs = error.retryAfterMs;
    throw error;
  } finally {
    outer.removeEventListener("abort", stop);
    // Whoever stops a turn leaves its reply: silence is a failure all the same.
    breaker.tell(verdict ?? (outer.aborted ? verdictOf(outer.reason, outer) : "unknown"), retryAfterMs);
    if (!isWhole) inner.abort(new Error("nobody reads the reply"));
  }
}
