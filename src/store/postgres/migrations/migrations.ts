import { createHash } from "node:crypto";
import { AGENT_FUNCTIONS } from "../functions/agents.ts";
import { CLAIM_FUNCTIONS } from "../functions/claims.ts";
import { COMPACTION_FUNCTIONS } from "../functions/compactions.ts";
import { CONCLUSION_FUNCTIONS } from "../functions/conclusions.ts";
import { FRAME_FUNCTIONS } from "../functions/frame.ts";
import { INBOUND_FUNCTIONS } from "../functions/inbound.ts";
import { TURN_END_FUNCTIONS } from "../functions/turn-ends.ts";
import { TURN_SWEEP_FUNCTIONS } from "../functions/turn-sweep.ts";
import { TURN_FUNCTIONS } from "../functions/turns.ts";
import { GATEWAY_TABLES } from "./gateway-tables.ts";
import { INBOUND_TABLES } from "./inbound-tables.ts";
import { KEY_COLUMNS } from "./key-columns.ts";
import { PAUSE_COLUMNS } from "./pause-columns.ts";
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
] as const;

const sql = [
  FRAME_FUNCTIONS,
  INBOUND_FUNCTIONS,
  CONCLUSION_FUNCTIONS,
  TURN_END_FUNCTIONS,
  TURN_FUNCTIONS,
  CLAIM_FUNCTIONS,
  COMPACTION_FUNCTIONS,
  TURN_SWEEP_FUNCTIONS,
  AGENT_FUNCTIONS,
].join("\n");

/** They are replaced as a whole wherever they are others. */
export const FUNCTIONS = { sql, digest: createHash("sha256").update(sql).digest("hex") };
