import { PREVIEWS } from "./previews.ts";
import { GATEWAY_TABLES, INBOUND_TABLES, TURN_TABLES } from "./tables.ts";

/**
 * The steps that create the schema, from the first released version on. A released step never changes. Gateways of two successive versions may run
 * on the same database, so a step may add tables and columns with a default, and may remove what no gateway since version `oldest` uses.
 */
export const MIGRATIONS = [
  { version: 6, oldest: 6, sql: `${TURN_TABLES}${INBOUND_TABLES}${GATEWAY_TABLES}` },
  { version: 7, oldest: 6, sql: PREVIEWS },
] as const;
