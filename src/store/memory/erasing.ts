import { NONE } from "./log-arena.ts";
import type { SessionRow } from "./session-row.ts";
import type { State } from "./state.ts";

/** What is left of a session that is gone: the newest chunk of its log. */
export type ErasedLog = { readonly ordinal: number; chunk: number };

/** A session of so many entries is erased at once; a longer one may have a hundred thousand, and others would wait for it. */
const AT_ONCE = 100;

/** The session is gone: erases its log, and what was recorded of its turns. Answers how many entries it erased at once. */
export const eraseLog = (state: State, { ordinal, chunk }: SessionRow): number => {
  const log = { ordinal, chunk };
  let erased = 0;
  while (erased < AT_ONCE && log.chunk !== NONE) erased += eraseChunk(state, log);
  if (log.chunk !== NONE) state.erasing.push(log);
  return erased;
};

/** Goes on with the longer ones, for about so many entries. Answers how many it erased. */
export const eraseMore = (state: State, limit: number): number => {
  let erased = 0;
  for (let log = state.erasing.peek(); log && erased < limit; log = state.erasing.peek()) {
    erased += eraseChunk(state, log);
    if (log.chunk === NONE) state.erasing.shift();
  }
  return erased;
};

/** Nobody finds the turn any more, whose first `turn.queued` entry is `seq`, and nothing is left of what was recorded of it. */
export const eraseTurn = (
  state: State,
  {
    ordinal,
    turnId,
    seq,
    deliveryId,
  }: { ordinal: number; turnId: string; seq: number; deliveryId: string | undefined },
): void => {
  state.index.delete(turnId, { ordinal, seq });
  if (deliveryId) state.deliveries.erase(deliveryId);
};

const eraseChunk = (state: State, log: ErasedLog): number => {
  const { before, outlines } = state.logs.erase(log.chunk);
  log.chunk = before;
  for (const { turnId, seq, begun } of outlines)
    if (begun) eraseTurn(state, { ordinal: log.ordinal, turnId, seq, ...begun });
  return outlines.length;
};
