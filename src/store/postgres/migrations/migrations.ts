import { createHash } from "node:crypto";
import { FUNCTION_TEXT } from "./functions.ts";
import { GATEWAY_TABLES } from "./gateway-tables.ts";
import { INBOUND_TABLES } from "./inbound-tables.ts";
import { KEY_COLUMNS } from "./key-columns.ts";
import { PAUSE_COLUMNS } from "./pause-columns.ts";
import { RULE_COLUMNS } from "./rule-columns.ts";
import { TURN_TABLES } from "./turn-tables.ts";
import { USAGE_COLUMNS } from "./usage-columns.ts";

/**
 * The steps that made the schema what it is. A step that was released never changes. Gateways of the version before run beside those
 * of the next: a step adds (tables, columns with a default, functions), and takes away only what no gateway since `oldest` uses.
 */
export const MIGRATIONS = [
  { version: 1, oldest: 1, sql: `${TURN_TABLES}${INBOUND_TABLES}${GATEWAY_TABLES}` },
  { version: 2, oldest: 1, sql: USAGE_COLUMNS },
  { version: 3, oldest: 1, sql: KEY_COLUMNS },
  { version: 4, oldest: 1, sql: PAUSE_COLUMNS },
  { version: 5, oldest: 4, sql: RULE_COLUMNS },
] as const;

/** They are replaced as a whole wherever they are others. Those of the version before stay: its gateways call them. */
export const FUNCTIONS = { sql: FUNCTION_TEXT, digest: createHash("sha256").update(FUNCTION_TEXT).digest("hex") };
