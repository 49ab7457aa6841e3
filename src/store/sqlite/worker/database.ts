import { closeSync, fdatasync, fdatasyncSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { type Driver, openDriver } from "../file.ts";
import { fromBytes } from "../text.ts";
import { failureOf } from "./failures.ts";

/** The values that can be bound. A boolean, or a Buffer that is not in an array, makes libsql end the whole process. */
export type Value = string | number | Buffer | null;
type Statement = ReturnType<Driver["prepare"]>;

/** Rows come as arrays, with text for each column that was asked for as bytes (see `text.ts`). */
export type Query = {
  get<Row extends readonly unknown[]>(values: readonly Value[]): Row | undefined;
  all<Row extends readonly unknown[]>(values: readonly Value[]): Row[];
  /** The same a row at a time, however many there are. */
  each<Row extends readonly unknown[]>(values: readonly Value[]): Iterable<Row>;
};

/** Runs a statement that answers nothing. */
export type Run = (...values: readonly Value[]) => void;

const BUSY_MS = 1_000;
/** The most memory that pages of the file take. Other pages are read again, mostly from the system's own cache. */
const CACHE_KIB = 16_384;
/** Checkpoints are made between batches; this limit is for a batch that alone writes more pages. */
const WAL_PAGES = 4_096;
/** A sync is expected to take as long as the last one. A sync shorter than this blocks the thread, because an asynchronous sync takes as long. */
const SHORT_SYNC_MS = 1;

/** One connection, with statements that are prepared once. Parameters always go as one array (see `Value`). */
export class Database {
  readonly #driver: Driver;
  readonly #path: string;
  /** The write-ahead log, which is the same file as long as the connection is open. */
  #log: number | undefined;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #passive: Statement;
  #isBegun = false;
  #syncMs = 0;

  constructor(driver: Driver, path: string) {
    this.#driver = driver;
    this.#path = path;
    driver.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    // Its commits do not sync the log, `commit` does: the driver would have its times written, too, which takes four times as long.
    driver.exec("PRAGMA synchronous = NORMAL");
    driver.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    driver.exec(`PRAGMA wal_autocheckpoint = ${WAL_PAGES}`);
    this.#begin = driver.prepare("BEGIN IMMEDIATE");
    this.#commit = driver.prepare("COMMIT");
    this.#passive = driver.prepare("PRAGMA wal_checkpoint(PASSIVE)").raw();
  }

  /** Begins a transaction, unless one has begun. */
  begin(): void {
    if (this.#isBegun) return;
    this.#begin.run([]);
    this.#isBegun = true;
  }

  /** Commits and syncs. All writes are then on disk. */
  commit(): void {
    if (this.commitUnsynced()) this.#syncNow();
  }

  /** Returns true if there were any writes. They are on disk after the next sync. */
  commitUnsynced(): boolean {
    if (!this.#isBegun) return false;
    this.#commit.run([]);
    this.#isBegun = false;
    return true;
  }

  /** True if the last sync was slow. */
  get isSlow(): boolean {
    return this.#syncMs >= SHORT_SYNC_MS;
  }

  /** Calls `synced` when all commits are on disk, or with an error if the sync failed. The call is synchronous, except on a slow disk. */
  sync(synced: (error?: unknown) => void): void {
    const began = performance.now();
    const done = (error?: unknown): void => {
      this.#syncMs = performance.now() - began;
      synced(error);
    };
    if (this.isSlow) {
      fdatasync(this.#openLog(), (error) => done(error ? syncFailure(error) : undefined));
      return;
    }
    try {
      this.#syncNow();
    } catch (error) {
      done(error);
      return;
    }
    done();
  }

  #syncNow(): void {
    try {
      fdatasyncSync(this.#openLog());
    } catch (error) {
      throw syncFailure(error);
    }
  }

  #openLog(): number {
    this.#log ??= openLog(this.#path);
    return this.#log;
  }

  /** Quiet where the error has ended the transaction already. */
  rollback(): void {
    if (this.#driver.inTransaction) this.#driver.exec("ROLLBACK");
    this.#isBegun = false;
  }

  /** Brings all commits into the file itself, and empties the log. */
  truncateLog(): void {
    this.query("PRAGMA wal_checkpoint(TRUNCATE)").get([]);
  }

  /** Brings all commits into the file itself, as far as no reader is in the way. */
  checkpoint(): void {
    this.#passive.get([]);
  }

  exec(sql: string): void {
    this.#driver.exec(sql);
  }

  query(sql: string): Query {
    const statement = this.#driver.prepare(sql).raw();
    function* each<Row>(values: readonly Value[]): Iterable<Row> {
      for (const row of statement.iterate(values)) yield withTexts<Row>(row);
    }
    return {
      get: <Row>(values: readonly Value[]) => withTexts<Row | undefined>(statement.get(values)),
      all: <Row>(values: readonly Value[]) => [...each<Row>(values)],
      each,
    };
  }

  run(sql: string): Run {
    const statement = this.#driver.prepare(sql);
    return (...values) => {
      statement.run(values);
    };
  }

  close(): void {
    this.#driver.close();
    if (this.#log !== undefined) closeSync(this.#log);
  }
}

function withTexts<Row>(row: unknown): Row {
  if (!Array.isArray(row)) return row as Row;
  for (let at = 0; at < row.length; at++) if (Buffer.isBuffer(row[at])) row[at] = fromBytes(row[at]);
  return row as Row;
}

/** The error of a failed sync, as the driver would throw it. */
function syncFailure(cause: unknown): Error {
  return Object.assign(new Error("A file could not be synced.", { cause }), { code: "SQLITE_IOERR_FSYNC" });
}

/** The log that the first commit has made, when its folder names it on disk. */
function openLog(path: string): number {
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
  return openSync(`${path}-wal`, "r");
}

/** Opens the file, which is made when it is not there. */
export function openDatabase(path: string): Database {
  try {
    return new Database(openDriver(path), path);
  } catch (error) {
    throw failureOf(error, path);
  }
}
