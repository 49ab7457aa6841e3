import type { Page, Turn, TurnQuery } from "#store/store.ts";
import {
  decodeTurnCursor,
  encodeTurnCursor,
  isOpen,
  LOOKED_AT_TOGETHER,
  MOST_LOOKED_AT,
  matchesTurn,
} from "#store/turn-pages.ts";
import type { Pieces, Records, TurnRecord } from "./records.ts";

export const getTurn = (records: Records, turnId: string): Turn | undefined => {
  const record = findTurn(records, turnId);
  return record && withReply(records, record);
};

/** The turn with its reply, which an engine may leave to the journal. */
export const withReply = (records: Records, { turn, ordinal, replySeq }: TurnRecord): Turn => {
  if (replySeq === 0 || turn.reply !== undefined) return turn;
  const [entry] = records.journal(ordinal).after(replySeq - 1, 1);
  return { ...turn, reply: entry?.name === "message.completed" ? entry.text : undefined };
};

/** The turn, unless its session is gone: then it is about to be erased. */
export const findTurn = (records: Records, turnId: string): TurnRecord | undefined => {
  const record = records.turns.find(turnId);
  return record && records.sessions.at(record.ordinal) && record;
};

export function* listTurns(records: Records, query: TurnQuery): Pieces<Page<Turn>> {
  const before = query.cursor === undefined ? undefined : decodeTurnCursor(query.cursor);
  if (isOpen(query.status)) return listOpenTurns(records, query, before);
  const items: Turn[] = [];
  let through = before;
  for (let looked = 0; looked < MOST_LOOKED_AT; looked += LOOKED_AT_TOGETHER) {
    if (looked > 0) yield;
    const found = records.turns.before(through, LOOKED_AT_TOGETHER);
    for (const { turn, ordinal } of found) {
      through = turn.turnId;
      if (!matchesTurn(query, turn) || !records.sessions.at(ordinal)) continue;
      if (items.length === query.limit) return pageOf(items, items.at(-1)?.turnId);
      items.push({ ...turn, reply: undefined });
    }
    if (found.length < LOOKED_AT_TOGETHER) return pageOf(items, undefined);
  }
  return pageOf(items, through);
}

const listOpenTurns = (records: Records, query: TurnQuery, before: string | undefined): Page<Turn> => {
  const turns = records.turns
    .open(query.agent)
    .map(({ turn }) => turn)
    .filter((turn) => (before === undefined || turn.turnId < before) && matchesTurn(query, turn));
  turns.sort((a, b) => (a.turnId < b.turnId ? 1 : -1));
  const items = turns.slice(0, query.limit);
  return pageOf(items, turns.length > query.limit ? items.at(-1)?.turnId : undefined);
};

const pageOf = (items: Turn[], last: string | undefined): Page<Turn> => {
  return { items, next: last === undefined ? undefined : encodeTurnCursor(last) };
};
