import { GATEWAY_TABLES, INBOUND_TABLES, TURN_TABLES } from "./tables.ts";

/** Cached tokens, reasoning tokens, and costs in billionths. Most turns have none of them. */
const USAGE_COLUMNS = /* sql */ `
-- The three in this order; null where all of them are 0.
alter table turns add column more bigint[];
alter table sessions add column more bigint[];
-- Of a turn's end: [more, the model that answered where it is not the one that was asked for]; null where there is neither.
alter table entries add column used json;
alter table usage_counts
  add column cached bigint not null default 0,
  add column reasoning bigint not null default 0,
  add column cost bigint not null default 0;
`;

/** The time until which a key is good, and the key that was made in its place; null where there is none. */
const KEY_COLUMNS = /* sql */ `
alter table api_keys add column expires_at bigint, add column replaced_by text;
`;

/** The time since which an agent is paused, by the wall clock; null where it is not. It stands beside its beat, which every gateway looks at. */
const PAUSE_COLUMNS = /* sql */ `
alter table beats add column paused_at bigint;
`;

/** A bound that the rules ask for: when the head of a journal may be erased. */
const RULE_COLUMNS = /* sql */ `
-- Null: not before the next compaction. What is there is looked at once.
alter table sessions add column head_due bigint default 0;
create index sessions_by_use on sessions (least(updated_at, head_due));
create index turns_due on turns (ready_at) where ready_order is null and ready_at is not null;
`;

/**
 * The steps that make the schema. A step that was released never changes. Gateways of the version before run beside those
 * of the next: a step adds (tables, columns with a default), and takes away only what no gateway since `oldest` uses.
 */
export const MIGRATIONS = [
  { version: 1, oldest: 1, sql: `${TURN_TABLES}${INBOUND_TABLES}${GATEWAY_TABLES}` },
  { version: 2, oldest: 1, sql: USAGE_COLUMNS },
  { version: 3, oldest: 1, sql: KEY_COLUMNS },
  { version: 4, oldest: 1, sql: PAUSE_COLUMNS },
  { version: 5, oldest: 4, sql: RULE_COLUMNS },
  // It has no functions any more. The ones of the versions before stay where they are: their gateways call them.
  { version: 6, oldest: 4, sql: "" },
] as const;
