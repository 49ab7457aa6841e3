import type { TurnError } from "#store/store.ts";
import { takeBeatsBack } from "./beats.ts";
import { inOrder } from "./rows.ts";
import type { State } from "./state.ts";
import { finish, requeue } from "./turn-ends.ts";

/** Claims whose lease has ended go back to their queue, or fail where they were tried often enough. */
export const giveBackLost = (
  state: State,
  { now, time, maxAttempts, lost }: { now: number; time: number; maxAttempts: number; lost: TurnError },
): void => {
  for (const row of inOrder(state.turns.running.list())) {
    if (row.leaseEnds > time) continue;
    state.late.keep(row, time);
    if (row.attempt < maxAttempts || row.cancelled) requeue(state, row, now, 0);
    else finish(state, row, { now, status: "failed", reply: "", error: lost, usage: undefined });
  }
};

/** A turn is tried three times: more would be for `sweep` to know. */
const TRIES = 3;

/** How long a claim holds whose lease nobody knows any more. */
export const LEASE_MS = 30_000;

/**
 * At the opening of the file: nobody runs what a predecessor claimed. What was tried often enough is left to the first sweep. Where this
 * process opens it again (`isOurs`), its claims go on. Answers how much was taken back.
 */
export const takeBack = (
  state: State,
  now: number,
  isOurs: boolean,
): { turns: number; beats: number; announcements: number } => {
  const { time } = state.moment;
  const beats = takeBeatsBack(state, { now, time }, isOurs);
  const running = state.turns.running.list();
  if (isOurs) {
    for (const row of running) row.leaseEnds = time + LEASE_MS;
    return { turns: 0, beats, announcements: 0 };
  }
  const announcements = state.announcements.takeBack();
  const rows = inOrder(running).filter((row) => row.attempt < TRIES || row.cancelled);
  for (const row of rows) requeue(state, row, now, 0);
  return { turns: rows.length, beats, announcements };
};
