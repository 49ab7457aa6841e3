import type { KeyRecord, LateAttempt, Records } from "#store/rules/records.ts";
import type { ApiKey } from "#store/store.ts";
import { keepKey } from "../texts.ts";
import { fields } from "./fields.ts";
import { bounded, sql, textList } from "./sql.ts";
import { layout, Table } from "./table.ts";
import type { Part, Transaction } from "./transaction.ts";

const KEY_BYTES = 150;

const KEY = fields<KeyRecord>({ text: ["key", "hash", "turnId", "eventId"], bigint: ["expiresAt"] });
const KEYS = layout<KeyRecord>({
  table: "idempotency_keys",
  key: ["key"],
  keyOf: ({ key }) => key,
  keepKey,
  columns: KEY.columns((record) => record),
  read: KEY.read,
});

/** A key is kept as one that an index takes. */
export const keyRecords = (transaction: Transaction): Records["keys"] => {
  const wanted = new Set<string>();
  // Two that look for one key at once do so one after another, gateways of the version before among them.
  const locks: Part = {
    wanted: () => {
      const keys = [...wanted];
      wanted.clear();
      const lock = sql`select pg_advisory_xact_lock(1, hash) from (
        select distinct hashtext(key) as hash from unnest(${textList(keys)}) as of (key) order by 1) as hashes`;
      return keys.length === 0 || !transaction.isWriting ? [] : [{ sql: lock, take: () => {} }];
    },
  };
  transaction.add(locks);
  const table = new Table(transaction, KEYS);
  const weigh = (key: string): number => Buffer.byteLength(key) + KEY_BYTES;
  return {
    find: (key) => {
      const kept = keepKey(key);
      if (!table.knows(kept)) wanted.add(kept);
      return table.find(kept);
    },
    put: (record) => {
      const key = keepKey(record.key);
      if (!table.peek(key)) transaction.count("bytes", weigh(key));
      table.put({ ...record, key });
    },
    delete: ({ key }) => {
      transaction.count("bytes", -weigh(key));
      table.delete(key);
    },
    endedBy: (time, limit) =>
      table.scan(
        {
          where: sql`t.expires_at <= ${bounded(time)}`,
          order: "t.expires_at, t.key",
          matches: ({ expiresAt }) => expiresAt <= time,
          compare: (a, b) => a.expiresAt - b.expiresAt || (a.key < b.key ? -1 : 1),
        },
        limit,
      ),
  };
};

const LATE_ATTEMPT = fields<LateAttempt>(
  {
    text: ["turnId", "node", "agent", "surface"],
    integer: ["fence"],
    kept: ["caller"],
    "double precision": ["endsAt"],
  },
  { fence: "attempt", endsAt: "until" },
);
const LATE_ATTEMPTS = layout<LateAttempt>({
  table: "late_attempts",
  key: ["turn_id", "attempt"],
  keyOf: ({ turnId, fence }) => `${turnId} ${fence}`,
  keySql: "(t.turn_id || ' ' || t.attempt)",
  columns: LATE_ATTEMPT.columns((record) => record),
  read: LATE_ATTEMPT.read,
});

export const lateAttemptRecords = (transaction: Transaction): Records["lateAttempts"] => {
  const table = new Table(transaction, LATE_ATTEMPTS);
  return {
    find: (turnId, fence) => table.find(`${turnId} ${fence}`),
    put: (attempt) => table.put(attempt),
    delete: ({ turnId, fence }) => table.delete(`${turnId} ${fence}`),
    endedBy: (time) =>
      table.scan({
        where: sql`t.until <= ${transaction.sqlTime}`,
        order: "t.until, t.turn_id",
        matches: ({ endsAt }) => endsAt <= time,
        compare: (a, b) => a.endsAt - b.endsAt,
      }),
  };
};

const API_KEY = fields<ApiKey>({
  text: ["keyId", "prefix", "hash", "replacedBy"],
  kept: ["name"],
  json: ["scopes"],
  bigint: ["createdAt", "lastUsedAt", "expiresAt"],
});
const API_KEYS = layout<ApiKey>({
  table: "api_keys",
  key: ["key_id"],
  keyOf: ({ keyId }) => keyId,
  columns: API_KEY.columns((record) => record),
  read: API_KEY.read,
});

/** `areChanged` tells whether this pass has made, ended or used some. */
export const apiKeyRecords = (transaction: Transaction): Records["apiKeys"] & { areChanged(): boolean } => {
  const table = new Table(transaction, API_KEYS);
  return {
    // In the order of the table: it is not asked for in a transaction that makes some.
    all: () => table.scan({ where: sql`true`, order: "t.ordinal", matches: () => true, compare: () => 0 }),
    find: (keyId) => table.find(keyId),
    put: (key) => table.put(key),
    delete: (keyId) => table.delete(keyId),
    areChanged: () => [...table.changes()].length > 0,
  };
};
