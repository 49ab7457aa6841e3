import { newBareId } from "#kit/ids.ts";
import { type Migration, migrations } from "../migrations/all.ts";
import type { Database } from "./database.ts";
import { kindOf, OpenFailure } from "./failures.ts";

/** Tells our files from those of other programs: "AgGw". */
const APPLICATION_ID = 0x41674777;
/** The page size of a new file. It is twice the usual: a commit writes rows of many tables, each page with two calls. */
const PAGE_BYTES = 8_192;

/**
 * Brings the file to the newest version, each migration in a transaction: a failure leaves the file with the earlier migrations.
 * The caller holds the lock. Answers the version that the file had; 0 for a new file.
 */
export const migrate = (db: Database, path: string, now: number, all: readonly Migration[] = migrations): number => {
  const [version] = db.query("PRAGMA user_version").get<[number]>([]) ?? [0];
  const [application] = db.query("PRAGMA application_id").get<[number]>([]) ?? [0];
  const [tables] = db.query("SELECT count(*) FROM sqlite_schema").get<[number]>([]) ?? [0];
  if (tables > 0 && application !== APPLICATION_ID) {
    throw new OpenFailure(`The SQLite file ${path} belongs to another program.`);
  }
  if (version > all.length) {
    throw new OpenFailure(
      `The SQLite file ${path} was written by a newer gateway: it has version ${version}, this one knows ${all.length}.`,
    );
  }
  // It writes, so only now.
  db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  db.exec("PRAGMA journal_mode = WAL");
  for (const [at, step] of all.entries()) {
    if (at < version) continue;
    db.begin();
    try {
      if (typeof step === "string") db.exec(step);
      else step(db);
      if (at === 0) {
        db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
        db.run("INSERT INTO meta (name, value) VALUES (?, ?)")(["epoch", newBareId(now)]);
      }
      db.exec(`PRAGMA user_version = ${at + 1}`);
      db.commit();
    } catch (error) {
      db.rollback();
      throw kindOf(error) === "unexpected" ? stuck(path, at, error) : error;
    }
  }
  // A new file has the tables of earlier versions for a moment: it keeps no free pages of them.
  if (version === 0) db.exec("VACUUM");
  return version;
};

const stuck = (path: string, version: number, error: unknown): OpenFailure =>
  new OpenFailure(
    `The SQLite file ${path} could not be brought from version ${version} to ${version + 1} (${(error as Error).message}): it is as it was, of version ${version}.`,
    { cause: error },
  );
