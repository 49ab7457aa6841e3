import type { Clock } from "#kit/clock.ts";
import { sleep } from "#kit/clock.ts";
import type { Turn } from "#store/store.ts";
import type { FollowTurn, TurnStep, TurnSteps } from "./turn-events.ts";

/** A stream starts after this time even if the turn has no step yet, so that the client does not time out. */
const FIRST_STEP_MS = 10_000;

type FollowParts = { followTurn: FollowTurn; clock: Clock; replyWaitMs: number };
type View<T> = {
  /** The first event of the stream. */
  begin: T;
  show: (step: TurnStep) => readonly T[];
};

/** Resolves with the events of a turn after its first step, or after `FIRST_STEP_MS` or `replyWaitMs` if there is none. Rejects if the turn's stream fails before that, so that the caller gets an error. */
export async function followOnceBegun<T>(
  { followTurn, clock, replyWaitMs }: FollowParts,
  turn: Turn,
  { begin, show }: View<T>,
  callerSignal: AbortSignal,
): Promise<TurnSteps<T>> {
  const steps = followTurn(turn, undefined, show);
  const first = steps.next();
  const hasBegun = new AbortController();
  const timeout = sleep(clock, Math.min(FIRST_STEP_MS, replyWaitMs), callerSignal, hasBegun.signal);
  await Promise.race([first, timeout]).finally(() => hasBegun.abort());
  return new BegunSteps([Promise.resolve({ done: false, value: begin }), first], steps);
}

/** The events that were read already, then the rest. */
class BegunSteps<T> implements TurnSteps<T> {
  readonly #events: Promise<IteratorResult<T, undefined>>[];
  readonly #rest: TurnSteps<T>;

  constructor(events: Promise<IteratorResult<T, undefined>>[], rest: TurnSteps<T>) {
    this.#events = events;
    this.#rest = rest;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    return this.#events.shift() ?? this.#rest.next();
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#events.length = 0;
    return this.#rest.return();
  }
}
