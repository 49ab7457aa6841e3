import { statSync } from "node:fs";
import type { StoreNotice } from "#store/store.ts";
import type { CallOrder, FromWorker, WorkerOrder } from "../messages.ts";
import { migrations } from "../schema.ts";
import { bytesOf } from "../text.ts";
import { Batches } from "./batches.ts";
import { type Database, openDatabase } from "./database.ts";
import { failureOf, OpenFailure } from "./failures.ts";
import { migrate, newestOf } from "./migrate.ts";
import { resumeClaims, takeOver } from "./opening.ts";
import { SqliteRecords } from "./records.ts";
import { checkLog } from "./wal.ts";

const VERSION = newestOf(migrations);
const NO_CALLS: CallOrder = { calls: [], isOutOfOrder: true };

/** Opens the file and answers calls until the port closes. */
export function serve({ port, ...order }: WorkerOrder): void {
  const post = (message: FromWorker): void => port.postMessage(message);
  let batches: Batches;
  try {
    const { db, records, notices } = open(order);
    batches = new Batches(db, { records, offset: order.offset, post });
    post({ kind: "opened", epoch: epochOf(db), totals: records.stats(), agents: records.takeChangedAgents(), notices });
  } catch (error) {
    post({ kind: "refused", error: failureOf(error, order.path) });
    port.close();
    return;
  }

  /** Pieces of long calls go on when nothing else waits, and after each batch else. */
  const run = (order: CallOrder): void => {
    if (!batches.isLost) batches.run(order);
    if (!batches.isLost && batches.hasParked) setImmediate(run, NO_CALLS);
  };
  port.on("message", (order: CallOrder | "close") => {
    if (order !== "close") {
      run(order);
      return;
    }
    batches.close(() => port.close());
  });
}

function open({ path, now, time, offset, isOurs, epoch, policy }: Omit<WorkerOrder, "port">) {
  const notices: StoreNotice[] = [];
  const tail = isOurs ? undefined : checkLog(path);
  if (tail) {
    const detail = `The end of the write-ahead log of ${path} was incomplete: ${tail.bytes} bytes (${tail.frames} pages) of unacknowledged data were discarded.`;
    notices.push({ name: "repaired", detail });
  }
  const db = openDatabase(path);
  if (isOurs) requireSame(db, { path, epoch });
  else checkPages(db, path);
  const version = migrate(db, path, now);
  if (version > 0 && version < VERSION) {
    notices.push({ name: "migrated", detail: `${path} was upgraded from version ${version} to ${VERSION}.` });
  }
  const records = new SqliteRecords(db);
  records.setBookmarks({ policy });
  records.moment = { now, time: time + offset };
  if (isOurs) resumeClaims(records);
  else notices.push(...takeOver(records));
  records.flush();
  db.commit();
  records.takeNews();
  return { db, records, notices };
}

function epochOf(db: Database): string {
  const [epoch] = db.query(`SELECT ${bytesOf("value")} FROM meta WHERE name = 'epoch'`).get<[string]>([]) ?? [""];
  return epoch;
}

/** Clients know data of the store that was open before; a different store in its place must not be used. */
function requireSame(db: Database, { path, epoch }: { path: string; epoch: string }): void {
  const [tables] = db.query("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'").get<[number]>([]) ?? [0];
  if (tables > 0 && epochOf(db) === epoch) return;
  throw new OpenFailure(`The SQLite file ${path} is not the file that was open before. Restart the gateway to use it.`);
}

/** The size that is checked in half a second; a larger file shows its damage when it is read. */
const CHECKED_BYTES = 512 * 1024 * 1024;

function checkPages(db: Database, path: string): void {
  if (statSync(path).size > CHECKED_BYTES) return;
  const [said] = db.query("PRAGMA quick_check(1)").get<[string]>([]) ?? ["nothing was answered"];
  if (said === "ok") return;
  const why = said.replaceAll(/\s+/g, " ").trim();
  throw new OpenFailure(`The SQLite file ${path} is damaged (${why}). Restore a backup.`);
}
