import type { Database } from "../worker/database.ts";
import { first } from "./0001-first.ts";
import { inbound } from "./0001-inbound.ts";
import { records } from "./0004-records.ts";

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

/** In order, and never changed once they were released: the first makes version 1 of an empty file. */
export const migrations: readonly Migration[] = [first + inbound, usage, pauses, records];
