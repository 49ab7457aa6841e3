import type { KeyRecord, LateAttempt, Records } from "#store/rules/records.ts";
import type { ApiKey } from "#store/store.ts";
import { encodeKey } from "../texts.ts";
import { fields } from "./fields.ts";
import { sql, textList } from "./sql.ts";
import { layout, storedIn, Table } from "./table.ts";
import type { Part, Transaction } from "./transaction.ts";

const KEY_BYTES = 150;

const KEY = fields<Omit<KeyRecord, "key">>({ text: ["hash", "turnId", "eventId"], bigint: ["expiresAt"] });
const KEYS = layout<KeyRecord>({
  table: "idempotency_keys",
  key: ["key"],
  keyOf: ({ key }) => encodeKey(key),
  encodeKey,
  columns: [["key", "text", ({ key }) => encodeKey(key)], ...KEY.columns<KeyRecord>((record) => record)],
  read: (row) => ({ key: row.key as string, ...KEY.read(row) }),
});

/** Idempotency keys, encoded because an index does not accept every text. */
export function keyRecords(transaction: Transaction): Records["keys"] {
  const wanted = new Set<string>();
  // With this lock, only one transaction at a time searches for a key, even if gateways of the previous version are running.
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
  const table = new Table(transaction, KEYS, (before, after) => {
    const weight = Buffer.byteLength(encodeKey((before ?? after)?.key ?? "")) + KEY_BYTES;
    transaction.count("bytes", (after ? weight : 0) - (before ? weight : 0));
  });
  return {
    ...storedIn(table),
    find: (key) => {
      const wantedKey = encodeKey(key);
      if (!table.knows(wantedKey)) wanted.add(wantedKey);
      return table.find(wantedKey);
    },
    endedBy: (upTo, limit) => table.scan({ where: { expires_at: { upTo } }, by: "expires_at", limit }),
  };
}

const LATE_ATTEMPT = fields<LateAttempt>(
  {
    text: ["turnId", "node", "agent", "surface"],
    integer: ["fence"],
    escaped: ["caller"],
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

export function lateAttemptRecords(transaction: Transaction): Records["lateAttempts"] {
  const table = new Table(transaction, LATE_ATTEMPTS);
  return {
    ...storedIn(table),
    find: (turnId, fence) => table.find(`${turnId} ${fence}`),
    endedBy: (upTo) => table.scan({ where: { until: { upTo } }, by: "until" }),
  };
}

const API_KEY = fields<ApiKey>({
  text: ["keyId", "prefix", "hash", "replacedBy"],
  escaped: ["name"],
  json: ["scopes"],
  bigint: ["createdAt", "lastUsedAt", "expiresAt"],
});
const API_KEYS = layout<ApiKey>({
  table: "api_keys",
  key: ["key_id"],
  keyOf: ({ keyId }) => keyId,
  columns: API_KEY.columns((record) => record),
  computed: { place: [() => "t.ordinal", () => 0] },
  read: API_KEY.read,
});

/** `areChanged` returns true if this pass has created, revoked or used a key. */
export function apiKeyRecords(transaction: Transaction): Records["apiKeys"] & { areChanged(): boolean } {
  const table = new Table(transaction, API_KEYS);
  return {
    // In the order of creation. A key of this transaction would be out of order, but no rule calls this after it has created one.
    all: () => table.scan({ by: "place" }),
    find: (keyId) => table.find(keyId),
    put: (key) => table.put(key),
    delete: (keyId) => {
      const key = table.peek(keyId);
      if (key) table.delete(key);
    },
    areChanged: () => [...table.changes()].length > 0,
  };
}

/** The number of requests of a key in each slice of a window. `widthMs` is the duration of a slice. */
export type Rate = {
  readonly key: string;
  readonly slices: readonly number[];
  readonly counts: readonly number[];
  readonly widthMs: number;
  readonly endsAt: number;
};

const RATE = fields<Pick<Rate, "key" | "widthMs" | "endsAt">>({
  escaped: ["key"],
  "double precision": ["widthMs", "endsAt"],
});
const RATES = layout<Rate>({
  table: "rate_counts",
  key: ["key"],
  keyOf: ({ key }) => key,
  columns: [
    ...RATE.columns<Rate>((rate) => rate),
    ["slices", "bigint[]", ({ slices }) => slices],
    ["counts", "integer[]", ({ counts }) => counts],
  ],
  read: (row) => ({ ...RATE.read(row), slices: (row.slices as string[]).map(Number), counts: row.counts as number[] }),
});

export function rateRecords(transaction: Transaction): Table<Rate> {
  return new Table(transaction, RATES);
}
