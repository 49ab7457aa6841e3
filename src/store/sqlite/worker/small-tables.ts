import { type Scale, weighKey, weighSummary } from "#store/live/weights.ts";
import type { KeyRecord, Records, SummaryRecord } from "#store/rules/records.ts";
import type { UsageCount } from "#store/store.ts";
import { COUNT_BYTES, HOUR, NO_COUNTS } from "#store/usage-counts.ts";
import type { Database } from "./database.ts";
import { Table } from "./table.ts";

const HELD = 100;

export const keyTable = (db: Database, scale: Scale) => {
  const table = new Table<string, KeyRecord>(db, {
    table: "idempotency_keys",
    key: "key",
    columns: ["expires_at"],
    keyOf: ({ key }) => key,
    valuesOf: ({ expiresAt }) => [expiresAt],
    held: HELD,
  });
  const ended = table.search("WHERE expires_at <= ? ORDER BY expires_at LIMIT ?");
  const records: Records["keys"] = {
    find: (key) => table.find(key),
    put: (record) => {
      const known = table.held(record.key);
      scale.weigh(known ? weighKey(known) : 0, weighKey(record));
      table.put(record);
    },
    delete: (record) => {
      scale.weigh(weighKey(record), 0);
      table.delete(record.key);
    },
    endedBy: (time, limit) => ended(time, limit),
  };
  return { table, records };
};

export const summaryTable = (db: Database, scale: Scale) => {
  const table = new Table<number, SummaryRecord>(db, {
    table: "summaries",
    key: "session",
    columns: [],
    keyOf: ({ ordinal }) => ordinal,
    valuesOf: () => [],
    held: HELD,
  });
  const weigh = (ordinal: number, after: SummaryRecord | undefined): void => {
    const before = table.find(ordinal);
    scale.weigh(before ? weighSummary(before) : 0, after ? weighSummary(after) : 0);
  };
  const records: Records["summaries"] = {
    find: (ordinal) => table.find(ordinal),
    put: (record) => {
      weigh(record.ordinal, record);
      table.put(record);
    },
    delete: (ordinal) => {
      weigh(ordinal, undefined);
      table.delete(ordinal);
    },
  };
  return { table, records };
};

export const usageTable = (db: Database, scale: Scale) => {
  const keyOf = ({ hour, agent, model, surface, caller }: Parameters<Records["usage"]["add"]>[0]): string =>
    `${hour} ${JSON.stringify([agent, model, surface, caller])}`;
  const table = new Table<string, UsageCount>(db, {
    table: "usage",
    key: "counter",
    columns: ["hour"],
    keyOf,
    valuesOf: ({ hour }) => [hour],
    held: HELD,
  });
  const between = table.search("WHERE hour >= ? AND hour < ? ORDER BY hour");
  const first = db.query("SELECT 1 FROM usage WHERE hour <= ? LIMIT 1");
  const next = db.query("SELECT min(hour) FROM usage WHERE hour >= ?");
  const ended = db.run("DELETE FROM usage WHERE hour <= ?");
  const records: Records["usage"] = {
    add: (of, change) => {
      const known = table.find(keyOf(of));
      if (!known) scale.weigh(0, COUNT_BYTES);
      const count: UsageCount = { ...of, ...NO_COUNTS, ...known };
      for (const name of Object.keys(change) as (keyof typeof change)[]) count[name] += change[name] ?? 0;
      table.put(count);
    },
    nextHour: (from) => {
      table.flush();
      return next.get<[number | null]>([from])?.[0] ?? undefined;
    },
    between: (from, to, agent) =>
      between(from, Math.min(to, Number.MAX_SAFE_INTEGER)).filter(
        (count) => agent === undefined || count.agent === agent,
      ),
    deleteEndedBy: (time) => {
      table.flush();
      if (!first.get([time - HOUR])) return;
      db.begin();
      scale.weigh(ended([time - HOUR]) * COUNT_BYTES, 0);
      table.forgetHeld();
    },
  };
  return { table, records };
};
