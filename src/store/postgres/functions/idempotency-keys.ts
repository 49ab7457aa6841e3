/** Idempotency keys. Whoever looks one up holds its lock until its transaction ends, so that of two that come at once one starts the work. */
export const IDEMPOTENCY_FUNCTIONS = /* sql */ `
-- The first locks of a transaction, in an order that all take them in.
create or replace function lock_keys(keys text[]) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(1, hash)
  from (select distinct hashtext(key) as hash from unnest(keys) as of (key) where key is not null order by 1) as hashes;
end
$$;

-- Stable, so that it sees what its caller sees: with a look of its own it could find a key whose turn the caller does not see yet.
create or replace function find_key(in_key text, at_wall bigint) returns idempotency_keys language plpgsql stable as $$
declare
  known idempotency_keys;
begin
  select * into known from idempotency_keys where key = in_key and expires_at > at_wall;
  return known;
end
$$;

create or replace function key_bytes(in_key text) returns integer language sql immutable as $$
  select octet_length(in_key) + 150
$$;

-- Answers how many bytes it counts for: none where it stands in the place of one that has ended and was not swept yet.
create or replace function keep_key(in_key text, in_hash text, in_expires bigint, in_turn text, in_event text) returns integer language plpgsql as $$
declare
  bytes integer;
begin
  insert into idempotency_keys (key, hash, expires_at, turn_id, event_id) values (in_key, in_hash, in_expires, in_turn, in_event)
  on conflict (key) do update set
    hash = excluded.hash, expires_at = excluded.expires_at, turn_id = excluded.turn_id, event_id = excluded.event_id
  returning case when xmax = 0 then key_bytes(key) else 0 end into bytes;
  return bytes;
end
$$;

-- Answers by how many bytes the store holds less, and how many went.
create or replace function sweep_keys(at_wall bigint, most integer, out freed bigint, out gone integer) language sql as $$
  with gone as (
    delete from idempotency_keys where key in (
      select key from idempotency_keys where expires_at <= at_wall order by expires_at limit most for update skip locked
    ) and expires_at <= at_wall returning key
  )
  select coalesce(sum(key_bytes(key)), 0)::bigint, count(*)::integer from gone
$$;
`;
