import { newBareId } from "#kit/ids.ts";
import { counterOf, LONGEST_NAMES } from "#store/tables/layouts.ts";
import { migrations, OLDEST, start } from "../schema.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database } from "./database.ts";
import { kindOf, OpenFailure } from "./failures.ts";

/** Tells our files from those of other programs: "AgGw". */
export const APPLICATION_ID = 0x41674777;
/** The page size of a new file. It is twice the usual: a commit writes rows of many tables, each page with two calls. */
const PAGE_BYTES = 8_192;

/** The version that all migrations lead to. */
export function newestOf(all: readonly string[]): number {
  return OLDEST + all.length;
}

/**
 * Brings the file to the newest version, each migration in a transaction: a failure leaves the file with the earlier migrations.
 * The caller holds the lock. Answers the version that the file had; 0 for a new file.
 */
export function migrate(db: Database, path: string, now: number, all: readonly string[] = migrations): number {
  const [version] = db.query("PRAGMA user_version").get<[number]>([]) ?? [0];
  const [application] = db.query("PRAGMA application_id").get<[number]>([]) ?? [0];
  const [tables] = db.query("SELECT count(*) FROM sqlite_schema").get<[number]>([]) ?? [0];
  if (tables > 0 && application !== APPLICATION_ID) {
    throw new OpenFailure(`The SQLite file ${path} belongs to another program.`);
  }
  if (version > newestOf(all)) {
    throw new OpenFailure(
      `The SQLite file ${path} was written by a newer gateway: it has version ${version}, and this gateway supports up to ${newestOf(all)}.`,
    );
  }
  if (version > 0 && version < OLDEST) {
    throw new OpenFailure(
      `The SQLite file ${path} is from before 0.2.0: it has version ${version}, and this gateway supports ${OLDEST} and later. Set store.path to another file.`,
    );
  }
  // It writes, so only now.
  db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  db.exec("PRAGMA journal_mode = WAL");
  if (version === 0) {
    step(db, path, 0, start.version, () => {
      db.exec(start.sql);
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      db.run("INSERT INTO meta (name, value) VALUES (?, ?)")("epoch", newBareId(now));
    });
  }
  for (let at = version === 0 ? start.version : version; at < newestOf(all); at++) {
    const migration = all[at - OLDEST] as string;
    step(db, path, at, at + 1, () => {
      db.exec(migration);
      if (at === OLDEST) renameCounters(db);
    });
  }
  return version;
}

/** Gives counters the keys of today: those of 0.2.0 have names of any length. */
function renameCounters(db: Database): void {
  const rename = db.run("UPDATE usage SET counter = ? WHERE counter = ?");
  const long = db.query(`SELECT ${bytesOf("counter")}, ${bytesOf("body")} FROM usage WHERE length(counter) > ?`);
  for (const [counter, body] of long.all<[string, string]>([LONGEST_NAMES])) {
    rename(toSql(counterOf(JSON.parse(body))), toSql(counter));
  }
}

function step(db: Database, path: string, from: number, to: number, run: () => void): void {
  db.begin();
  try {
    run();
    db.exec(`PRAGMA user_version = ${to}`);
    db.commit();
  } catch (error) {
    db.rollback();
    const kind = kindOf(error);
    if (kind !== "unexpected" && kind !== "damaged") throw error;
    const damaged = from === OLDEST ? findDamage(db) : undefined;
    throw new OpenFailure(
      `The SQLite file ${path} could not be upgraded from version ${from} to ${to} (${damaged ?? (error as Error).message}). It still has version ${from}.`,
      { cause: error },
    );
  }
}

/** The tables of version 4 that the upgrade reads: the key and the column of their records, and a value that each record has. */
const READ = [
  ["deliveries", "delivery_id", "body", "body -> '$.delivery.headers'"],
  ["events", "event_id", "body", "body -> '$.event'"],
  ["live", "id", "body", "body"],
  ["usage", "counter", "body", "body"],
  ["meta", "name", "value", "value"],
] as const;

/** Names the first record that the upgrade cannot read. Undefined if there is none. */
function findDamage(db: Database): string | undefined {
  for (const [table, key, column, value] of READ) {
    const damaged = `CASE WHEN json_valid(${column}) THEN ${value} IS NULL ELSE ${key} NOT IN ('epoch', 'probe') END`;
    const [found] =
      db.query(`SELECT ${freeBytesOf(key)} FROM ${table} WHERE ${damaged} LIMIT 1`).get<[string]>([]) ?? [];
    if (found !== undefined)
      return `the record ${found} of the table ${table} is damaged. Restore a backup, or correct or delete this record`;
  }
  return undefined;
}
