/** Sessions, their journals and their turns; and the facts that gateways on one database share about each other. */
export const TURN_TABLES = /* sql */ `
create table gateway_store (
  single boolean primary key default true check (single),
  epoch text not null
);

-- The gateways that are there, by the database's clock.
create table nodes (
  node text primary key,
  seen double precision not null
) with (fillfactor = 50);

create table sessions (
  ordinal bigint generated always as identity primary key,
  session_id text collate "C" not null unique,
  agent text not null,
  channel text not null,
  user_id text not null,
  created_at bigint not null,
  updated_at bigint not null,
  first_seq integer not null default 1,
  last_seq integer not null default 0,
  message_count integer not null default 0,
  compacted_count integer not null default 0,
  turns_queued integer not null default 0,
  -- Unfinished turns, and compactions that wait or run.
  open integer not null default 0,
  input bigint not null default 0,
  output bigint not null default 0,
  context_bytes bigint not null default 0,
  bytes bigint not null default 0,
  summary text,
  summary_outside boolean,
  summary_through integer not null default 0,
  summary_except integer[] not null default '{}',
  -- Cached tokens, reasoning tokens, and costs in billionths; null where all of them are 0.
  more bigint[],
  -- From when on the head of the journal may be erased. Null: not before the next compaction.
  head_due bigint default 0
) with (fillfactor = 70);
create index sessions_of_agents on sessions (agent, ordinal);
create index sessions_by_use on sessions (least(updated_at, head_due));

create table entries (
  session bigint not null,
  seq integer not null,
  at bigint not null,
  turn_id text not null,
  name text not null,
  message_id text,
  role text,
  text text,
  outside boolean,
  context text,
  attempt integer,
  input bigint,
  output bigint,
  error text,
  detail text,
  sizes json,
  -- Of a turn's end: [more, the model that answered if another one was asked for]; null where there is neither.
  used json,
  primary key (session, seq)
);

create sequence ready_orders as bigint;
create table turns (
  turn_id text primary key,
  session bigint not null,
  session_id text not null,
  agent text not null,
  surface text not null,
  caller text not null,
  status text not null,
  attempt integer not null default 0,
  created_at bigint not null,
  started_at bigint,
  ended_at bigint,
  model text,
  counted_model text not null,
  skill_ids json not null,
  message_id text not null,
  seq integer not null,
  -- The entry that holds its reply.
  reply_at integer,
  error text,
  detail text,
  input bigint,
  output bigint,
  delivery_id text,
  waited boolean not null,
  channel text,
  hops integer,
  has_events boolean not null,
  reply_message_id text,
  spent_ms double precision not null default 0,
  is_cancelled boolean not null default false,
  node text,
  lease_ends double precision,
  -- From when on it can be claimed; null while it is not first in its queue, or not queued.
  ready_at double precision,
  ready_order bigint,
  -- As in sessions.
  more bigint[]
) with (fillfactor = 70);
create index turns_of_sessions on turns (session, seq);
create index turns_unfinished on turns (session, seq) where ended_at is null;
create index turns_ready on turns (agent, waited, ready_at, ready_order) where ready_at is not null;
create index turns_due on turns (ready_at) where ready_order is null and ready_at is not null;
create index turns_running on turns (turn_id) where status = 'running';

create table compactions (
  compaction_id text primary key,
  session bigint not null,
  -- Behind the turns whose seq is smaller.
  place integer not null,
  ordinal bigint generated always as identity,
  node text not null,
  lease_ends double precision not null
);
create index compactions_of_sessions on compactions (session, place, ordinal);

-- Attempts that lost their claim while they ran: what they used is still to come.
create table late_attempts (
  turn_id text not null,
  attempt integer not null,
  node text not null,
  agent text not null,
  surface text not null,
  caller text not null,
  until double precision not null,
  primary key (turn_id, attempt)
);

-- Sessions that are gone, and have more to erase than one call should.
create table erased_sessions (session bigint primary key);

-- How each agent's last turns ended, as each lane knows it.
create table agent_ends (
  lane text not null,
  agent text not null,
  ended_at bigint,
  failing boolean,
  failing_at double precision,
  primary key (lane, agent)
) with (fillfactor = 50);
`;

/** The tables of system events, beats, announcements, recorded requests, keys, usage and the gateway's stream. */
export const INBOUND_TABLES = /* sql */ `
create table counts (
  lane text not null,
  name text not null,
  value bigint not null,
  primary key (lane, name)
) with (fillfactor = 50);

create table idempotency_keys (
  key text collate "C" primary key,
  hash text not null,
  expires_at bigint not null,
  turn_id text,
  event_id text
);
create index idempotency_keys_by_end on idempotency_keys (expires_at);

create table api_keys (
  key_id text primary key,
  ordinal bigint generated always as identity,
  name text not null,
  prefix text not null,
  hash text not null,
  scopes json not null,
  created_at bigint not null,
  last_used_at bigint,
  expires_at bigint,
  -- The key that was made in its place.
  replaced_by text
);

create table gateway_place (
  is_one boolean primary key default true check (is_one),
  first bigint not null,
  last bigint not null
) with (fillfactor = 50);
insert into gateway_place (first, last) values (1, 0);

-- A row holds what one call has told, from \`first\` to \`last\`.
create table gateway_entries (
  first bigint primary key,
  last bigint not null,
  at bigint not null,
  news text not null
);

create sequence event_ordinals as bigint;
create table events (
  ordinal bigint not null,
  event_id text collate "C" primary key,
  agent text not null,
  text text not null,
  metadata text,
  size integer not null,
  caller text not null,
  state text not null default 'queued' check (state in ('queued', 'handled', 'dead')),
  attempts integer not null default 0,
  created_at bigint not null,
  ended_at bigint,
  -- The last that ended.
  turn_id text,
  reason text,
  delivery_id text,
  -- What was recorded of it is finished with it.
  is_recorded boolean not null
);
create unique index events_in_order on events (ordinal);
create index events_that_wait on events (agent, ordinal) where state = 'queued';
create index events_by_end on events (ended_at) where ended_at is not null;

-- The events that a turn works on: a row for all of them, as to write each of them anew would take as long as to end it.
create table event_batches (
  turn_id text primary key,
  agent text not null,
  ordinals bigint[] not null,
  most_attempts integer not null,
  stream_keep integer not null
);
create index event_batches_of_agents on event_batches (agent);

create table beats (
  agent text primary key,
  -- Grows with each change, so that what is older can be told.
  version bigint not null default 0,
  due double precision,
  noted double precision,
  is_asked boolean not null default false,
  is_running boolean not null default false,
  node text,
  fence bigint not null default 0,
  lease_ends double precision,
  -- The time since which the agent is paused, by the wall clock.
  paused_at bigint
) with (fillfactor = 50);

create sequence announcement_ordinals as bigint;
create table announcements (
  turn_id text collate "C" primary key,
  ordinal bigint not null default nextval('announcement_ordinals'),
  session_id text not null,
  session_ordinal bigint not null,
  agent text not null,
  channel text not null,
  hops integer not null,
  delivery_id text,
  created_at bigint not null,
  attempts integer not null default 0,
  due double precision not null default 0,
  is_claimed boolean not null default false,
  node text,
  fence bigint not null default 0,
  lease_ends double precision
);
create index announcements_that_wait on announcements (channel, ordinal) where not is_claimed;
create index announcements_of_sessions on announcements (session_ordinal);

create table deliveries (
  ordinal bigint generated always as identity primary key,
  delivery_id text collate "C" not null unique,
  at bigint not null,
  surface text not null,
  kept text not null,
  request_id text not null,
  turn_id text,
  session_id text,
  event_id text,
  mapping text,
  sender_id text,
  record text not null,
  steps text,
  step_count smallint not null,
  body text,
  bytes integer not null
);
create index deliveries_of_sessions on deliveries (session_id) where session_id is not null;
-- A row holds what one call has finished, in that order.
create table finished_deliveries (
  is_refused boolean not null,
  place bigint generated always as identity,
  ordinals bigint[] not null,
  primary key (is_refused, place)
) with (fillfactor = 50);

create table usage_counts (
  lane text not null,
  hour bigint not null,
  agent text not null,
  model text not null,
  surface text not null,
  caller text not null,
  messages bigint not null,
  completed bigint not null,
  failed bigint not null,
  cancelled bigint not null,
  attempts bigint not null,
  latency_ms double precision not null,
  input bigint not null,
  output bigint not null,
  cached bigint not null default 0,
  reasoning bigint not null default 0,
  cost bigint not null default 0,
  primary key (hour, agent, model, surface, caller, lane)
) with (fillfactor = 70);

create unlogged table rate_counts (
  key text collate "C" primary key,
  slices bigint[] not null default '{}',
  counts integer[] not null default '{}',
  width_ms double precision not null default 0,
  ends_at double precision not null default 0
) with (fillfactor = 50);

create unlogged table reply_texts (
  session_id text not null,
  seq bigint not null,
  place integer not null,
  length integer not null,
  turn_id text not null,
  message_id text not null,
  text text not null,
  at timestamptz not null default clock_timestamp(),
  primary key (session_id, seq, place)
);
`;

/** The gateways that there are, and the agents of each. */
export const GATEWAY_TABLES = /* sql */ `
-- By the database's clock. Those that were closed stay for a while: what they had is known until then.
create table gateways (
  node text primary key,
  agents text[] not null,
  seen double precision not null
) with (fillfactor = 50);
`;
