import { begunIn } from "../entry-codec.ts";
import { eraseDelivery } from "./deliveries.ts";
import { type JournalRow, ROWS_A_LOOK } from "./journal.ts";
import type { State } from "./state.ts";

/** A session of about so many rows is erased at once; a longer one may have a hundred thousand, and others would wait for it. */
const AT_ONCE = 64;

/** The session is gone: erases its journal and its turns, and what was recorded of them. Answers how many rows it erased at once. */
export const eraseJournal = (state: State, ordinal: number): number => {
  const erased = eraseRows(state, ordinal, AT_ONCE);
  if (erased === AT_ONCE) state.erasing.add(ordinal);
  return erased;
};

/** Goes on with the longer ones, for about so many rows. Answers how many it erased. */
export const eraseMore = (state: State, limit: number): number => {
  let erased = 0;
  for (const ordinal of state.erasing) {
    while (erased < limit) {
      const rows = eraseRows(state, ordinal, ROWS_A_LOOK);
      erased += rows;
      if (rows === ROWS_A_LOOK) continue;
      state.erasing.delete(ordinal);
      break;
    }
    if (erased >= limit) break;
  }
  return erased;
};

const eraseRows = (state: State, ordinal: number, limit: number): number => {
  const rows = state.journal.after(ordinal, 0, limit);
  eraseTurnsIn(state, rows);
  state.journal.erase(ordinal, rows);
  return rows.length;
};

const eraseTurnsIn = (state: State, rows: readonly JournalRow[]): void => {
  for (const [lastSeq, body] of rows) {
    for (const { turnId } of begunIn(body, lastSeq)) eraseTurn(state, turnId);
  }
};

/** A turn that has ended, and what was recorded of it. */
export const eraseTurn = (state: State, turnId: string): void => {
  eraseDelivery(state, state.ended.delete(turnId));
};
