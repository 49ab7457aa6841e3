import { setImmediate as nextTurn } from "node:timers/promises";
import { decodeCursor, encodeCursor } from "#store/cursors.ts";
import type { Page, Store, Turn, TurnQuery } from "#store/store.ts";
import { isOpen, MOST_LOOKED_AT, matchesTurn } from "#store/turn-pages.ts";
import { turnOf } from "#store/views.ts";
import { readTurnAt, type State, sessionOfTurn } from "./state.ts";

/** The turns that are looked at together, before other work runs: each is read from the journal of its session. */
const LOOKED_AT_TOGETHER = 16;

export const turnListMethods = (state: State): Pick<Store, "listTurns"> => ({
  listTurns: async (query) => {
    const before = query.cursor === undefined ? Infinity : decodeCursor(query.cursor);
    return isOpen(query.status) ? listOpen(state, query, before) : await scan(state, query, before);
  },
});

const listOpen = (state: State, query: TurnQuery, before: number): Page<Turn> => {
  const rows = state.active.values().filter((row) => row.number < before && matchesTurn(query, row));
  rows.sort((a, b) => b.number - a.number);
  const last = rows[query.limit - 1];
  const next = rows.length > query.limit && last ? encodeCursor(last.number) : undefined;
  return { items: rows.slice(0, query.limit).map(turnOf), next };
};

const scan = async (state: State, query: TurnQuery, before: number): Promise<Page<Turn>> => {
  const items: Turn[] = [];
  let through = before;
  let lastFound = 0;
  for (let looked = 0; looked < MOST_LOOKED_AT; looked += LOOKED_AT_TOGETHER) {
    if (looked > 0) await nextTurn();
    const rows = state.turnLog.below(through, LOOKED_AT_TOGETHER);
    for (const { number, ...place } of rows) {
      through = number;
      const session = sessionOfTurn(state, place);
      if (!session || (query.sessionId !== undefined && session.sessionId !== query.sessionId)) continue;
      if (query.agent !== undefined && session.agent !== query.agent) continue;
      const turn = readTurnAt(state, session, place.seq);
      if (!turn || !matchesTurn(query, turn)) continue;
      if (items.length === query.limit) return { items, next: encodeCursor(lastFound) };
      items.push({ ...turn, reply: undefined });
      lastFound = number;
    }
    if (rows.length < LOOKED_AT_TOGETHER) return { items, next: undefined };
  }
  return { items, next: encodeCursor(through) };
};
