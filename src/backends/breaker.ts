import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { StopSignal } from "#kit/stop-signal.ts";

/** The number of failures in a row, with no answer between them, that opens the breaker. */
const FAILURES = 5;
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 60_000;
/** The time after which to ask again while one call tries the remote. */
const POLL_AGAIN_MS = 1_000;

/** The result of a call. `unknown`: its end was not waited for. */
type Verdict = "answered" | "failed" | "unknown";

/** A call that a breaker let through. Only the first report of the caller counts, and the caller must make one. */
type GuardedCall = {
  answered(): void;
  /** Returns the error of the call: the reason of the stop if it was stopped, else `thrown`. */
  failed(thrown: unknown): unknown;
  /** Nobody waits for its end any more. */
  left(): void;
};

/**
 * Protects a failing remote, and the callers that would wait for it. After several failures in a row the remote gets no calls for
 * a while, each time twice as long. Then one call tries it, and the others wait for the result.
 */
export class Breaker {
  readonly #clock: Clock;
  #failures = 0;
  #nextMs = FIRST_REST_MS;
  #opensAt: number | undefined;
  #isTried = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The time, in milliseconds, until the remote may be asked; 0 if it may be asked now. A call of this method changes nothing.
   */
  restMs(): number {
    if (this.#opensAt === undefined) return 0;
    const left = this.#opensAt - this.#clock.monotonic();
    if (left > 0) return left;
    return this.#isTried ? POLL_AGAIN_MS : 0;
  }

  /** Throws while `who` gets no calls, and if the call was stopped before. */
  begin(who: string, signal: StopSignal): GuardedCall {
    signal.throwIfAborted();
    const waitMs = this.restMs();
    if (waitMs > 0)
      throw new BackendError(`${who} has failed several times in a row and gets no requests for a while`, {
        retryable: true,
        retryAfterMs: Math.ceil(waitMs),
      });
    this.#isTried = this.#opensAt !== undefined;
    let isOver = false;
    const tell = (verdict: Verdict, retryAfterMs?: number) => {
      if (!isOver) this.#tell(verdict, retryAfterMs);
      isOver = true;
    };
    return {
      answered: () => tell("answered"),
      failed(thrown) {
        const error = signal.aborted ? signal.reason : thrown;
        tell(verdictOf(error, signal), error instanceof BackendError ? error.retryAfterMs : undefined);
        return error;
      },
      left: () => tell(signal.aborted ? verdictOf(signal.reason, signal) : "unknown"),
    };
  }

  #tell(verdict: Verdict, retryAfterMs = 0): void {
    this.#isTried = false;
    if (verdict === "unknown") return;
    if (verdict === "answered") {
      this.#failures = 0;
      this.#nextMs = FIRST_REST_MS;
      this.#opensAt = undefined;
      return;
    }
    const now = this.#clock.monotonic();
    // Calls that were under way when it opened give no new information.
    if (++this.#failures < FAILURES || (this.#opensAt !== undefined && this.#opensAt > now)) return;
    this.#opensAt = now + Math.max(this.#nextMs, Math.min(retryAfterMs, LONGEST_REST_MS));
    this.#nextMs = Math.min(this.#nextMs * 2, LONGEST_REST_MS);
  }
}

/**
 * An error that another try would not change shows that the remote is there. A remote that was silent until the turn was stopped
 * has failed.
 */
function verdictOf(error: unknown, signal: StopSignal): Verdict {
  if (signal.aborted) return signal.reason === "no-answer" || signal.reason === "silence" ? "failed" : "unknown";
  return error instanceof BackendError && !error.retryable ? "answered" : "failed";
}
