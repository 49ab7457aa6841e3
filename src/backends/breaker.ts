import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { StopSignal } from "#kit/stop-signal.ts";

/** So many failures in a row, with no answer between them, open it. */
const FAILURES = 5;
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 60_000;
/** While one call tries it. */
const LOOK_AGAIN_MS = 1_000;

/** How a call went. `unknown`: nobody waited for its end. */
type Verdict = "answered" | "failed" | "unknown";

/** A call that a breaker let through. What it hears first counts, and it has to hear something. */
export type GuardedCall = {
  answered(): void;
  /** Answers what the call fails with: why it was stopped, where it was. */
  failed(thrown: unknown): unknown;
  /** Nobody waits for its end any more. */
  left(): void;
};

/**
 * Spares a remote that fails, and those who would wait for it. After several failures in a row it is left alone for a while, each time twice as long;
 * then one call tries it, and the others wait for how that goes.
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

  /** How long it is left alone from now on, in milliseconds; 0: it may be asked. Looking changes nothing. */
  restMs(): number {
    if (this.#opensAt === undefined) return 0;
    const left = this.#opensAt - this.#clock.monotonic();
    if (left > 0) return left;
    return this.#isTried ? LOOK_AGAIN_MS : 0;
  }

  /** Throws while `who` is left alone, and where the call was stopped before. */
  begin(who: string, signal: StopSignal): GuardedCall {
    signal.throwIfAborted();
    const waitMs = this.restMs();
    if (waitMs > 0)
      throw new BackendError(`${who} has failed several times in a row, and is left alone for a while`, {
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
    // Those that were under way when it opened tell nothing new.
    if (++this.#failures < FAILURES || (this.#opensAt !== undefined && this.#opensAt > now)) return;
    this.#opensAt = now + Math.max(this.#nextMs, Math.min(retryAfterMs, LONGEST_REST_MS));
    this.#nextMs = Math.min(this.#nextMs * 2, LONGEST_REST_MS);
  }
}

/** An error that another try would not change says that the remote is there; who was silent until the turn was stopped has failed. */
const verdictOf = (error: unknown, signal: StopSignal): Verdict => {
  if (signal.aborted) return signal.reason === "no-answer" || signal.reason === "silence" ? "failed" : "unknown";
  return error instanceof BackendError && !error.retryable ? "answered" : "failed";
};
