import type { Database } from "../worker/database.ts";
import { first } from "./0001-first.ts";
import { inbound } from "./0001-inbound.ts";
import { usage } from "./0002-usage.ts";
import { pauses } from "./0003-pauses.ts";
import { records } from "./0004-records.ts";

/** Statements, or a function that runs them and converts rows. */
export type Migration = string | ((db: Database) => void);

/** In order, and never changed once they were released: the first makes version 1 of an empty file. */
export const migrations: readonly Migration[] = [first + inbound, usage, pauses, records];
