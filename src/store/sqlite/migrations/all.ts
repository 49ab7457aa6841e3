import type { Database } from "../worker/database.ts";
import { records } from "./0004-records.ts";
import { tables } from "./0004-tables.ts";

/** A new file begins with this version. */
export const start = { version: 4, sql: `CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;\n${tables}` };

/** More counters: cached tokens, reasoning tokens, and costs in billionths. */
const usage = `
ALTER TABLE usage_counters ADD COLUMN cached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_counters ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_counters ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
`;

/** The time since which an agent is paused; null where it is not. */
const pauses = "ALTER TABLE agents ADD COLUMN paused_at INTEGER;";

/** Statements, or a function that runs them and converts rows. */
export type Migration = string | ((db: Database) => void);

/** In order, and never changed once they were released: the first brings a file of version 1 to version 2. */
export const migrations: readonly Migration[] = [usage, pauses, records];
