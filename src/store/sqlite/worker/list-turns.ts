import type { Page, Turn, TurnQuery } from "#store/store.ts";
import {
  decodeTurnCursor,
  encodeTurnCursor,
  isOpen,
  LOOKED_AT_TOGETHER,
  MOST_LOOKED_AT,
  matchesTurn,
} from "#store/turn-pages.ts";
import { turnOf } from "#store/views.ts";
import type { State } from "./state.ts";
import { decodeEndedTurn } from "./turn-codec.ts";

/** Larger than every id. */
const PAST_ALL = "~";

/** A page of turns: those that have not ended are held, and the others are read in the order of their ids. */
export function* listTurns(state: State, query: TurnQuery): Generator<undefined, Page<Turn>, undefined> {
  const before = query.cursor === undefined ? PAST_ALL : decodeTurnCursor(query.cursor);
  const open = state.turns.list().flatMap((row) => (row.turnId < before && matchesTurn(query, row) ? turnOf(row) : []));
  if (isOpen(query.status)) return pageOf(query, open, undefined);
  // What ends while this one waits for its turn is among those that are open.
  const ids = new Set(open.map(({ turnId }) => turnId));
  const ended: Turn[] = [];
  let through = before;
  for (let looked = 0; looked < MOST_LOOKED_AT; looked += LOOKED_AT_TOGETHER) {
    if (looked > 0) yield;
    const rows = state.ended.below(through, LOOKED_AT_TOGETHER);
    for (const row of rows) {
      [through] = row;
      const turn = ids.has(through) ? undefined : readWanted(state, query, row);
      if (turn) ended.push(turn);
      if (ended.length > query.limit) return pageOf(query, [...open, ...ended], through);
    }
    if (rows.length < LOOKED_AT_TOGETHER) return pageOf(query, [...open, ...ended], undefined);
  }
  return pageOf(query, [...open, ...ended], through);
}

const readWanted = (state: State, query: TurnQuery, [turnId, ordinal, body]: [string, number, string]) => {
  const session = state.sessions.at(ordinal);
  if (!session || (query.sessionId !== undefined && session.sessionId !== query.sessionId)) return undefined;
  if (query.agent !== undefined && session.agent !== query.agent) return undefined;
  // Most that do not match are passed over without being taken apart.
  if (query.status !== undefined && !body.includes(`"${query.status}"`)) return undefined;
  const { turn } = decodeEndedTurn(turnId, session, body);
  return turn.seq > session.firstSeq && matchesTurn(query, turn) ? turn : undefined;
};

/** The found turns down to `through`. There may be more below it: those were not looked at. */
const pageOf = ({ limit }: TurnQuery, found: Turn[], through: string | undefined): Page<Turn> => {
  const turns = through === undefined ? found : found.filter(({ turnId }) => turnId >= through);
  turns.sort((a, b) => (a.turnId < b.turnId ? 1 : -1));
  const items = turns.slice(0, limit);
  const last = turns.length > limit ? items.at(-1)?.turnId : through;
  return { items, next: last === undefined ? undefined : encodeTurnCursor(last) };
};
