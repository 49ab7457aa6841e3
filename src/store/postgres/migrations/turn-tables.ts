/** Sessions, their journals and their turns; and what the gateways on one database know of each other. */
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

-- What was told to other gateways in the last seconds: whoever missed it finds it here. Whoever has lost its connection looks for itself.
-- Its numbers are kept all the same: those of an unlogged sequence are broken on a standby that was promoted.
create sequence news_ids as bigint;
create unlogged table news (
  id bigint primary key default nextval('news_ids'),
  lane text not null,
  at double precision not null,
  changes text not null
);

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
  summary_except integer[] not null default '{}'
) with (fillfactor = 70);
create index sessions_of_agents on sessions (agent, ordinal);

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
  ready_order bigint
) with (fillfactor = 70);
create index turns_of_sessions on turns (session, seq);
create index turns_unfinished on turns (session, seq) where ended_at is null;
create index turns_ready on turns (agent, waited, ready_at, ready_order) where ready_at is not null;
create index turns_running on turns (turn_id) where status = 'running';

-- Those that can be read: the others are about to be erased.
create view live_turns as
  select t.* from turns t join sessions s on s.ordinal = t.session and t.seq > s.first_seq;

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
