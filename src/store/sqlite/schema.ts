import {
  CONTENTS,
  DELIVERIES,
  EVENTS,
  KEYS,
  LARGE_LAYOUTS,
  NOTIFICATIONS,
  SESSIONS,
  USAGE,
} from "#store/tables/layouts.ts";
import { sqliteSchema } from "#store/tables/schema.ts";

/** The oldest version that is upgraded: that of 0.2.0. */
export const OLDEST = 4;

/** Records that are completely in memory, by table, and the numbers of the whole store. */
const LIVE_TABLE = "create table live (kind text, id, body text not null, primary key (kind, id)) without rowid;";

/** The tables of a new file. Each record is a row with the columns that queries need and the record as JSON. */
export const start = {
  version: 5,
  sql: `
create table meta (name text primary key, value) without rowid;

${LIVE_TABLE}

-- Entries that were appended in one batch, from first_seq on. The gateway's stream has the session 0.
create table journal (
  session integer not null,
  first_seq integer not null,
  body text not null,
  primary key (session, first_seq)
) without rowid;

${sqliteSchema(LARGE_LAYOUTS)}`,
};

/**
 * The beats of 0.2.0 have a lease, and the turn of a beat has `events`. They become a run and a task. Each open turn of a beat gets a run, which has
 * the range of the events that turns of the agent work on. A running beat without a turn becomes due.
 */
const BEATS = `
update live set body = json_remove(json_set(body, '$.open.task', json_set(body -> '$.open.events', '$.kind', 'beat')), '$.open.events')
where kind = 'turn' and body ->> '$.open.events' is not null;

create temp table runs as select agent, json_object(
  'began', unixepoch() * 1000,
  'through', coalesce((select value ->> '$.numbers.event' from meta where name = 'state'), 0),
  'before', 0,
  'after', 0,
  'events', sum(events),
  'returned', 0,
  'turnIds', json_group_array(id),
  'openTurnId', min(id),
  'dead', json_array(),
  'isLast', json('false')) as run
from (select id, body ->> '$.turn.agent' as agent, json_array_length(body, '$.open.task.ids') as events
  from live where kind = 'turn' and body ->> '$.open.task' is not null order by id) group by agent;
update runs set run = json_set(run, '$.before', lowest - 1, '$.after', highest, '$.returned',
  (select count(*) from events where agent = of_agent and is_free = 1 and ordinal < highest))
from (select agent as of_agent, min(ordinal) as lowest, max(ordinal) as highest from events where is_free = 0 and ended_at is null group by agent)
where of_agent = agent;
update live set body = json_remove(json_set(body, '$.run', json(run)), '$.lease', '$.fence') from runs where kind = 'beat' and id = agent;
update live set body = json_remove(json_set(body, '$.dueAt', 0), '$.lease') where kind = 'beat' and body ->> '$.lease' is not null;
update live set body = json_remove(body, '$.fence') where kind = 'beat';
drop table runs;
`;

/** Sizes are counted in the escaped JSON text, because `length` stops at a NUL character. */
const DELIVERIES_OF_4 = `
insert into contents select place, '{"place":' || place || ',"headers":' || (body -> '$.delivery.headers') ||
  ifnull(',"body":' || (body -> '$.delivery.body'), '') || '}' from old_deliveries;

insert into deliveries select delivery_id, place, refused, ended_order, json_set(json_remove(body, '$.delivery.headers', '$.delivery.body'),
  '$.contentBytes', length(replace(escaped, '\\', '')) - 2 * (length(escaped) - length(replace(escaped, '\\u', ''))),
  '$.delivery.showsWords', json(iif(body -> '$.delivery.body' is null, 'false', 'true')))
from (select *, replace(substr(headers, 2, length(headers) - 2) || substr(content, 2, length(content) - 2), '\\\\', 'x') as escaped
  from (select *, body -> '$.delivery.headers' as headers, ifnull(body -> '$.delivery.body', '""') as content from old_deliveries));
`;

/** An announcement becomes a message for the endpoint of its channel. */
const MESSAGE = `json_set(json_remove(body, '$.announcement'), '$.message', json_remove(json_set(json(body -> '$.announcement'),
  '$.id', body ->> '$.announcement.turnId', '$.endpoint', json('"channel:' || substr(body -> '$.announcement.channel', 2))), '$.turnId'))`;

/** API keys get a `place` from the order of their rows. The counts of agents and of the store become flat. */
const LIVE = `
${LIVE_TABLE}
insert into live select case kind when 'turn' then 'open_turns' when 'beat' then 'beats' when 'agent' then 'agents' when 'announcement' then 'outgoing'
  when 'erasure' then 'erasures' else 'late_attempts' end, id, case kind when 'announcement' then ${MESSAGE} else body end from old_live where kind not in ('counts', 'key');
insert into live select 'api_keys', id, '{"key":' || body || ',"place":' || (place - 1 - (select max(place) from old_live)) || '}'
from old_live where kind = 'key';

create temp table counted as select id as agent, coalesce(body ->> '$.counts.queued', 0) as queued, coalesce(body ->> '$.counts.running', 0) as running,
  coalesce(body ->> '$.counts.waitingEvents', 0) as waiting, coalesce(body ->> '$.counts.openEvents', 0) as open,
  coalesce(body ->> '$.counts.deadEvents', 0) as dead from old_live where kind = 'counts';
insert into live select 'agent_counts', agent, json_object('agent', agent, 'queued', queued, 'running', running, 'compactions', 0,
  'waitingEvents', waiting, 'openEvents', open, 'deadEvents', dead) from counted;
insert into live select 'all', 'state', json_remove(json_set(value, '$.version', 0,
  '$.open', (select json_object('queued', ifnull(sum(queued), 0), 'running', ifnull(sum(running), 0), 'compactions', 0,
    'waitingEvents', ifnull(sum(waiting), 0), 'openEvents', ifnull(sum(open), 0), 'deadEvents', ifnull(sum(dead), 0)) from counted),
  '$.announcements', (select count(*) from live where kind = 'outgoing'),
  '$.notifications', json_object('waiting', json_object(), 'ended', json_object())), '$.bookmarks') from meta where name = 'state';
delete from meta where name = 'state';
drop table counted;
`;

/** The tables of version 4 whose rows change. Those of `turns`, `journal` and `summaries` stay as they are. */
const CHANGED = ["live", "sessions", "events", "deliveries", "idempotency_keys", "usage"];
/** Their indexes, whose names the new ones may have. */
const INDEXES = [
  "live_by_id",
  "sessions_by_id",
  "sessions_by_agent",
  "events_by_id",
  "events_free",
  "events_ended",
  "deliveries_by_id",
  "deliveries_ended",
  "idempotency_keys_by_end",
  "usage_by_hour",
];

/** The new tables, and their indexes. A later version that changes the layouts must first store these texts here. */
const NEW = sqliteSchema([SESSIONS, EVENTS, DELIVERIES, CONTENTS, NOTIFICATIONS, KEYS, USAGE]).split(/(?<=;)\n/);
const NEW_TABLES = NEW.filter((statement) => statement.includes("create table"));
const NEW_INDEXES = NEW.filter((statement) => statement.includes(" index "));

const FROM_4 = `
${BEATS}
${INDEXES.map((name) => `drop index ${name};`).join("\n")}
${CHANGED.map((name) => `alter table ${name} rename to old_${name};`).join("\n")}
${NEW_TABLES.join("\n")}
${DELIVERIES_OF_4}${LIVE}
insert into sessions select ordinal, session_id, agent, substr(session_id, 1, 8) = 'webhook:', idle_at, idle_at / 60000, body
from (select *, min(used, ifnull(head, used)) as idle_at from old_sessions);
insert into events select event_id, ordinal, agent, ended_at is null, ended_at, body -> '$.event' from old_events;
insert into idempotency_keys select key, expires_at, body from old_idempotency_keys;
insert into usage select counter, body from old_usage;

${CHANGED.map((name) => `drop table old_${name};`).join("\n")}
${NEW_INDEXES.join("\n")}
`;

/** Statements, in order, and never changed once released. The first upgrades a file from the oldest version to the next. */
export const migrations: readonly string[] = [FROM_4];
