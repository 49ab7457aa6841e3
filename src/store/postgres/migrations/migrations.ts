import { GATEWAY_TABLES, INBOUND_TABLES, TURN_TABLES } from "./tables.ts";

/**
 * The steps that make the schema; no version before the first of them was released. A step that was released never changes. Gateways of the version
 * before run beside those of the next: a step adds (tables, columns with a default), and takes away only what no gateway since `oldest` uses.
 */
export const MIGRATIONS = [{ version: 6, oldest: 6, sql: `${TURN_TABLES}${INBOUND_TABLES}${GATEWAY_TABLES}` }] as const;
