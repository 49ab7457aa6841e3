import type { Clock } from "#kit/clock.ts";
import { sleep } from "#kit/clock.ts";
import type { Turn } from "#store/store.ts";
import { type FollowTurn, leavable, type TurnStep, type TurnSteps } from "./turn-events.ts";

/** A stream begins after this time even if the turn has no step to show, so that its reader does not give up. */
const FIRST_STEP_MS = 10_000;

type FollowParts = { followTurn: FollowTurn; clock: Clock; replyWaitMs: number };
type View<T> = {
  /** The first event of the stream. */
  begin: T;
  show: (step: TurnStep) => readonly T[];
};

/** The events of a turn, once there is one or the turn has lasted. Rejects if the turn fails before, so that its caller gets an error. */
export async function followOnceBegun<T>(
  { followTurn, clock, replyWaitMs }: FollowParts,
  turn: Turn,
  { begin, show }: View<T>,
  callerSignal: AbortSignal,
): Promise<TurnSteps<T>> {
  const steps = followTurn(turn, undefined, show);
  const first = steps.next();
  const hasBegun = new AbortController();
  const lasted = sleep(clock, Math.min(FIRST_STEP_MS, replyWaitMs), callerSignal, hasBegun.signal);
  await Promise.race([first, lasted]).finally(() => hasBegun.abort());
  async function* all(): AsyncGenerator<T, undefined> {
    yield begin;
    const { done, value } = await first;
    if (done) return;
    yield value;
    yield* steps;
  }
  return leavable(all(), () => void steps.return());
}
