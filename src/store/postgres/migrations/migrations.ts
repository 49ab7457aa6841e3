import { CONVERSION } from "./from-0.2.0/conversion.ts";
import { RECORD_TABLES, SHARED_TABLES } from "./schema.ts";

/**
 * `oldest` is the oldest version whose gateways work with the schema after this step. If `oldest` equals `version`, `agent-gateway migrate`
 * runs the step while all gateways are stopped. `release` is the first release with this version. The newest version has the whole `schema`, for a
 * database without one.
 */
export type Migration = {
  readonly version: number;
  readonly oldest: number;
  readonly sql: string;
  readonly release?: string;
  readonly schema?: string;
};

/**
 * The steps from the schema of one version to the next, from the first released version on. A released step never changes. A step with an earlier
 * `oldest` runs while gateways of that version use the database: it may add tables and columns with a default, and may remove unused ones. A step
 * whose `oldest` is its own version may do anything: `agent-gateway migrate` runs it.
 */
export const MIGRATIONS: readonly Migration[] = [
  // The oldest version that can be upgraded. Its schema is not created any more.
  { version: 6, oldest: 6, release: "0.2.0", sql: "" },
  { version: 8, oldest: 8, sql: CONVERSION, schema: `${RECORD_TABLES}${SHARED_TABLES}` },
];
