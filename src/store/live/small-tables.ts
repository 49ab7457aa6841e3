import type {
  BeatRecord,
  CompactionRecord,
  KeyRecord,
  LateAttempt,
  Records,
  SummaryRecord,
} from "#store/rules/records.ts";
import type { ApiKey } from "#store/store.ts";
import type { Queues } from "./queues.ts";
import { type Scale, weighKey, weighSummary } from "./weights.ts";

/** Records by a key, in the order in which they were put first. */
class Table<K, R> {
  readonly #rows = new Map<K, R>();
  readonly #keyOf: (record: R) => K;

  constructor(keyOf: (record: R) => K) {
    this.#keyOf = keyOf;
  }

  find = (key: K): R | undefined => this.#rows.get(key);
  put = (record: R): void => {
    this.#rows.set(this.#keyOf(record), record);
  };
  delete = (record: R): void => {
    this.#rows.delete(this.#keyOf(record));
  };
  values = (): Iterable<R> => this.#rows.values();
}

export const compactionRecords = (queues: Queues): Records["compactions"] => {
  const table = new Table<string, CompactionRecord>(({ compactionId }) => compactionId);
  return {
    find: table.find,
    put: (record) => {
      table.put(record);
      queues.set(record.ordinal, record.place, record);
    },
    delete: (record) => {
      table.delete(record);
      queues.set(record.ordinal, record.place, undefined);
    },
    leaseEnded: (time) => [...table.values()].filter(({ lease }) => lease.endsAt <= time),
  };
};

export const summaryRecords = (scale: Scale): Records["summaries"] => {
  const table = new Table<number, SummaryRecord>(({ ordinal }) => ordinal);
  const forget = (ordinal: number): void => {
    const record = table.find(ordinal);
    if (!record) return;
    scale.weigh(weighSummary(record), 0);
    table.delete(record);
  };
  return {
    find: table.find,
    put: (record) => {
      forget(record.ordinal);
      table.put(record);
      scale.weigh(0, weighSummary(record));
    },
    delete: forget,
  };
};

export const lateAttemptRecords = (): Records["lateAttempts"] => {
  const keyOf = ({ turnId, fence }: { turnId: string; fence: number }) => `${turnId} ${fence}`;
  const table = new Table<string, LateAttempt>(keyOf);
  return {
    find: (turnId, fence) => table.find(keyOf({ turnId, fence })),
    put: table.put,
    delete: table.delete,
    endedBy: (time) => [...table.values()].filter(({ endsAt }) => endsAt <= time),
  };
};

export const keyRecords = (scale: Scale): Records["keys"] => {
  const table = new Table<string, KeyRecord>(({ key }) => key);
  const forget = ({ key }: KeyRecord): void => {
    const record = table.find(key);
    if (!record) return;
    scale.weigh(weighKey(record), 0);
    table.delete(record);
  };
  return {
    find: table.find,
    put: (record) => {
      // One that is put again goes behind all others: they are in the order of their ends.
      forget(record);
      table.put(record);
      scale.weigh(0, weighKey(record));
    },
    delete: forget,
    endedBy: (time, limit) => {
      const ended: KeyRecord[] = [];
      for (const record of table.values()) {
        if (ended.length >= limit || record.expiresAt > time) break;
        ended.push(record);
      }
      return ended;
    },
  };
};

export const beatRecords = (): Records["beats"] => {
  const table = new Table<string, BeatRecord>(({ agent }) => agent);
  return {
    find: table.find,
    put: table.put,
    leaseEnded: (time) => [...table.values()].filter(({ lease }) => lease !== undefined && lease.endsAt <= time),
  };
};

export const apiKeyRecords = (): Records["apiKeys"] => {
  const keys = new Map<string, ApiKey>();
  return {
    all: () => [...keys.values()],
    find: (keyId) => keys.get(keyId),
    put: (key) => {
      keys.set(key.keyId, key);
    },
    delete: (keyId) => {
      keys.delete(keyId);
    },
  };
};
