import type { OpenTurns } from "#store/live/open-turns.ts";
import { type Scale, weighTurn } from "#store/live/weights.ts";
import { isOpen, type OpenTurnRecord, type Records, type Stream, type TurnRecord } from "#store/rules/records.ts";
import type { Entry } from "#store/store.ts";
import { toSql } from "../text.ts";
import type { Database } from "./database.ts";
import type { LiveRows } from "./live-rows.ts";
import { Table } from "./table.ts";

const HELD = 100;
/** Behind every id. */
const LAST = "\u{10ffff}";

type Parts = { scale: Scale; live: LiveRows; open: OpenTurns; journal: (ordinal: number) => Stream<Entry> };

/** Turns: the open ones are held in memory, the others are rows without their replies, which the journal has. */
export const turnTable = (db: Database, { scale, live, open, journal }: Parts) => {
  const table = new Table<string, TurnRecord>(db, {
    table: "turns",
    key: "turn_id",
    columns: [],
    keyOf: ({ turn }) => turn.turnId,
    valuesOf: () => [],
    held: HELD,
  });
  const before = table.search("WHERE turn_id < ? ORDER BY turn_id DESC LIMIT ?");
  for (const record of live.load<OpenTurnRecord>("turn")) open.put(record);
  const records: Records["turns"] = {
    find: (turnId) => {
      const ended = open.find(turnId) ?? table.find(turnId);
      return ended && ended.replySeq > 0 ? withReply(ended, journal(ended.ordinal)) : ended;
    },
    put: (record) => {
      const { turnId } = record.turn;
      const known = open.find(turnId) ?? table.held(turnId);
      scale.weigh(known ? weighTurn(known) : 0, weighTurn(record));
      if (isOpen(record)) {
        if (!(known && isOpen(known) && isOnlyExtended(known, record))) live.put("turn", turnId, record);
        open.put(record);
      } else {
        open.delete(turnId);
        live.delete("turn", turnId);
        table.put(record.replySeq > 0 ? { ...record, turn: { ...record.turn, reply: undefined } } : record);
      }
    },
    delete: (record) => {
      const { turnId } = record.turn;
      scale.weigh(weighTurn(open.find(turnId) ?? record), 0);
      open.delete(turnId);
      live.delete("turn", turnId);
      table.delete(turnId);
    },
    open: open.list,
    before: (turnId = LAST, limit) => {
      const unfinished: TurnRecord[] = open.list().filter(({ turn }) => turn.turnId < turnId);
      const found = unfinished.concat(before(toSql(turnId), limit));
      return found.sort((a, b) => (a.turn.turnId < b.turn.turnId ? 1 : -1)).slice(0, limit);
    },
    readyAgents: open.readyAgents,
    firstReady: open.firstReady,
    dueBy: open.dueBy,
    nextDueAt: open.nextDueAt,
    leaseEnded: open.leaseEnded,
  };
  return { table, records };
};

const withReply = (record: TurnRecord, journal: Stream<Entry>): TurnRecord => {
  const [entry] = journal.after(record.replySeq - 1, 1);
  const reply = entry?.name === "message.completed" ? entry.text : undefined;
  return { ...record, turn: { ...record.turn, reply } };
};

/** A lease is held in memory: it is extended also while the disk is full, and ends with the process. */
const isOnlyExtended = ({ turn, open }: OpenTurnRecord, after: OpenTurnRecord): boolean =>
  turn === after.turn &&
  open.lease?.node === after.open.lease?.node &&
  (Object.keys(after.open) as (keyof typeof open)[]).every(
    (name) => name === "lease" || open[name] === after.open[name],
  );
