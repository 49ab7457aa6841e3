import type { Scale } from "#store/live/weights.ts";
import { weighSession } from "#store/live/weights.ts";
import type { Records, SessionRecord } from "#store/rules/records.ts";
import { toSql } from "../text.ts";
import type { Database } from "./database.ts";
import { Table } from "./table.ts";

const HELD = 10_000;
/** How many rows a sweep looks at to find sessions that may go. */
const ROWS_A_LOOK = 100;

type Use = [ordinal: number, used: number, head: number | null];

export const sessionTable = (db: Database, scale: Scale, counts: { sessions: number }) => {
  const ordinals = new Map<string, number>();
  const table = new Table<number, SessionRecord>(db, {
    table: "sessions",
    key: "ordinal",
    columns: ["session_id", "agent", "used", "head"],
    keyOf: ({ session }) => session.ordinal,
    valuesOf: ({ session: { sessionId, agent, updatedAt }, headDueAt }) => [
      toSql(sessionId),
      toSql(agent),
      updatedAt,
      headDueAt ?? null,
    ],
    held: HELD,
    letGo: ({ session }) => {
      ordinals.delete(session.sessionId);
    },
  });
  const byId = table.lookUp("session_id");
  const before = table.search("WHERE ordinal < ? ORDER BY ordinal DESC LIMIT ?");
  const beforeOf = table.search("WHERE agent = ? AND ordinal < ? ORDER BY ordinal DESC LIMIT ?");
  const looked = db.query("SELECT ordinal, used, head FROM sessions WHERE ordinal > ? ORDER BY ordinal LIMIT ?");
  const records: Records["sessions"] = {
    find: (sessionId) => {
      const ordinal = ordinals.get(sessionId);
      if (ordinal !== undefined) return table.find(ordinal);
      const record = byId(toSql(sessionId));
      if (record) ordinals.set(sessionId, record.session.ordinal);
      return record;
    },
    at: (ordinal) => table.find(ordinal),
    put: (record) => {
      const { sessionId, ordinal } = record.session;
      const known = table.held(ordinal);
      if (!known) counts.sessions++;
      scale.weigh(known ? weighSession(known) : 0, weighSession(record));
      ordinals.set(sessionId, ordinal);
      table.put(record);
    },
    delete: (record) => {
      counts.sessions--;
      scale.weigh(weighSession(record), 0);
      table.delete(record.session.ordinal);
    },
    before: (ordinal, limit, agent) => {
      const end = Math.min(ordinal, Number.MAX_SAFE_INTEGER);
      return agent === undefined ? before(end, limit) : beforeOf(toSql(agent), end, limit);
    },
    after: (ordinal, limit, unusedSince) => {
      table.flush();
      const rows = looked.all<Use>([ordinal, ROWS_A_LOOK]);
      const found = rows.filter(([, used, head], n) => {
        const isLast = n === rows.length - 1;
        return isLast || used <= unusedSince || (head !== null && head <= unusedSince);
      });
      return found.slice(0, limit).flatMap(([at]) => table.find(at) ?? []);
    },
  };
  return { table, records };
};
