import { BEATS_AS_TURNS, COMPACTIONS_AS_TURNS } from "./beats.ts";
import { PREVIEWS } from "./previews.ts";
import { GATEWAY_TABLES, INBOUND_TABLES, TURN_TABLES } from "./tables.ts";

/** Each write updates the counts, so a gateway of version 0.2.0 that still runs after the upgrade cannot write anything. */
const COUNTERS = /* sql */ `
alter table counts rename to counters;
`;

/**
 * The steps that create the schema, from the first released version on. A released step never changes. A step with an earlier `oldest` runs while
 * gateways of that version use the database: it may add tables and columns with a default, and may remove unused ones. A step whose
 * `oldest` is its own version may do anything: `agent-gateway migrate` runs it.
 */
export const MIGRATIONS = [
  { version: 6, oldest: 6, release: "0.2.0", sql: `${TURN_TABLES}${INBOUND_TABLES}${GATEWAY_TABLES}` },
  { version: 7, oldest: 6, sql: PREVIEWS },
  { version: 8, oldest: 8, sql: `${BEATS_AS_TURNS}${COMPACTIONS_AS_TURNS}${COUNTERS}` },
] as const;
