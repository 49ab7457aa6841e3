import type { KeyRecord, LateAttempt, Records } from "#store/rules/records.ts";
import type { ApiKey, Surface } from "#store/store.ts";
import { keepKey, keepText } from "../texts.ts";
import { bounded, number, optional, optionalText, sql, text, textList } from "./sql.ts";
import { type Layout, Table } from "./table.ts";
import type { Part, Transaction } from "./transaction.ts";

const KEY_BYTES = 150;

const KEYS: Layout<KeyRecord> = {
  table: "idempotency_keys",
  key: ["key"],
  keyOf: ({ key }) => key,
  keySql: "t.key",
  keepKey,
  columns: [
    ["key", "text", ({ key }) => key],
    ["hash", "text", ({ hash }) => hash],
    ["expires_at", "bigint", ({ expiresAt }) => expiresAt],
    ["turn_id", "text", ({ turnId }) => turnId],
    ["event_id", "text", ({ eventId }) => eventId],
  ],
  read: (row) => ({
    key: row.key as string,
    hash: row.hash as string,
    expiresAt: number(row.expires_at),
    turnId: optionalText(row.turn_id),
    eventId: optionalText(row.event_id),
  }),
};

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
    reset: () => {},
    saved: () => [],
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

const LATE_ATTEMPTS: Layout<LateAttempt> = {
  table: "late_attempts",
  key: ["turn_id", "attempt"],
  keyOf: ({ turnId, fence }) => `${turnId} ${fence}`,
  keySql: "(t.turn_id || ' ' || t.attempt)",
  columns: [
    ["turn_id", "text", ({ turnId }) => turnId],
    ["attempt", "integer", ({ fence }) => fence],
    ["node", "text", ({ node }) => node],
    ["agent", "text", ({ agent }) => agent],
    ["surface", "text", ({ surface }) => surface],
    ["caller", "text", ({ caller }) => keepText(caller)],
    ["until", "double precision", ({ endsAt }) => endsAt],
  ],
  read: (row) => ({
    turnId: row.turn_id as string,
    fence: number(row.attempt),
    node: row.node as string,
    agent: row.agent as string,
    surface: row.surface as Surface,
    caller: text(row.caller),
    endsAt: number(row.until),
  }),
};

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

const API_KEYS: Layout<ApiKey> = {
  table: "api_keys",
  key: ["key_id"],
  keyOf: ({ keyId }) => keyId,
  keySql: "t.key_id",
  columns: [
    ["key_id", "text", ({ keyId }) => keyId],
    ["name", "text", ({ name }) => keepText(name)],
    ["prefix", "text", ({ prefix }) => prefix],
    ["hash", "text", ({ hash }) => hash],
    ["scopes", "json", ({ scopes }) => scopes],
    ["created_at", "bigint", ({ createdAt }) => createdAt],
    ["last_used_at", "bigint", ({ lastUsedAt }) => lastUsedAt],
    ["expires_at", "bigint", ({ expiresAt }) => expiresAt],
    ["replaced_by", "text", ({ replacedBy }) => replacedBy],
  ],
  read: (row) => ({
    keyId: row.key_id as string,
    name: text(row.name),
    prefix: row.prefix as string,
    hash: row.hash as string,
    scopes: row.scopes as ApiKey["scopes"],
    createdAt: number(row.created_at),
    lastUsedAt: optional(row.last_used_at),
    expiresAt: optional(row.expires_at),
    replacedBy: (row.replaced_by ?? undefined) as string | undefined,
  }),
};

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
