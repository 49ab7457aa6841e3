/** What an event counts for limits.storeBytes beside its texts. */
export const EVENT_BYTES = 350;

/** System events. The bytes of one are what it counts for limits.storeBytes. */
export const EVENT_FUNCTIONS = /* sql */ `
create or replace function event_bytes(size integer) returns integer language sql immutable as $$
  select size + ${EVENT_BYTES}
$$;

create or replace function event_json(event events) returns json language sql stable as $$
  select row_to_json(known) from (select event.*, taken_by(event) as taken_by) as known
$$;

-- Orders of which none has a key and none is refused, as their node sees: \`deltas\` are what they add to the counters, \`news\` what they tell,
-- \`asking\` whose beat is to come at once. Answers their ordinals.
create or replace function keep_events(
  orders json, deliveries json, deltas jsonb, news text, asking text[], ring json, last_at bigint, keep integer, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  ordinals json;
  sooner json[];
  told json;
begin
  with added as (
    insert into events (ordinal, event_id, agent, text, metadata, size, caller, created_at, delivery_id, is_recorded)
    select nextval('event_ordinals'), of.id, of.agent, of.text, of.metadata, of.size, of.caller, of.now, of.delivery, of.delivery is not null
    from rows from (json_to_recordset(orders) as (
      id text, agent text, text text, metadata text, size integer, caller text, now bigint, delivery text
    )) with ordinality as of (id, agent, text, metadata, size, caller, now, delivery, n) order by of.n
    returning ordinal
  )
  select json_agg(ordinal order by ordinal) into ordinals from added;
  if deliveries is not null then
    deltas := deltas || record_deliveries(deliveries, null, ring);
  end if;
  if cardinality(asking) > 0 then
    sooner := ask_beats(asking, engine_time(at_ms));
  end if;
  told := append_gateway(json_array_length(ordinals), news, last_at, keep);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'results', ordinals, 'counts', deltas, 'first', told->'first', 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

-- Several orders, each kept or refused for itself. \`known_view\`: { open, bytes, keys } as the caller's node knows them; \`again\`: some of these
-- orders may have been kept by a call whose answer was lost.
-- Answers for each order its ordinal, the { event } that it repeats, or { refused, held }.
create or replace function queue_events(
  orders json, deliveries json, known_view json, ring json, again boolean, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  open_now bigint := (known_view->>'open')::bigint;
  bytes_now bigint := (known_view->>'bytes')::bigint;
  bytes_before constant bigint := bytes_now;
  results json[] := '{}';
  repeats integer[] := '{}';
  repeated text[] := '{}';
  news json[] := '{}';
  asking text[] := '{}';
  accepted integer[] := '{}';
  ordinals bigint[] := '{}';
  agents text[] := '{}';
  keys jsonb := '{}';
  deltas jsonb;
  sooner json[];
  entries json;
  o record;
  known idempotency_keys;
  event events;
  place bigint;
  keep integer;
  last_at bigint;
  has_keys constant boolean := (known_view->>'keys')::boolean;
begin
  if has_keys then
    perform lock_keys(array(select of.key from json_to_recordset(orders) as of (key text) where of.key is not null));
  end if;
  for o in
    select of.* from rows from (json_to_recordset(orders) as (
      id text, agent text, size integer, now bigint, beat boolean, key text, hash text, expires bigint, events bigint, bytes bigint, keep integer
    )) with ordinality as of (id, agent, size, now, beat, key, hash, expires, events, bytes, keep, n) order by of.n
  loop
    if again then
      select * into event from events where event_id = o.id;
      if found then
        results := results || json_build_object('event', event_json(event), 'kept', true);
        continue;
      end if;
    end if;
    if o.key is not null then
      if keys ? o.key then
        results := results || json_build_object('refused', 'idempotency-mismatch');
        if keys->o.key->>'hash' = o.hash then
          repeats := repeats || cardinality(results);
          repeated := repeated || (keys->o.key->>'event');
        end if;
        continue;
      end if;
      known := find_key(o.key, o.now);
      if known.key is not null then
        if known.hash <> o.hash or known.event_id is null then
          results := results || json_build_object('refused', 'idempotency-mismatch');
        else
          select * into event from events where event_id = known.event_id;
          results := results || case
            when found then json_build_object('event', event_json(event)) else json_build_object('refused', 'event-not-found')
          end;
        end if;
        continue;
      end if;
    end if;
    if open_now >= o.events then
      results := results || json_build_object('refused', 'gateway-busy', 'held', open_now);
      continue;
    end if;
    if bytes_now >= o.bytes then
      results := results || json_build_object('refused', 'store-full', 'held', bytes_now);
      continue;
    end if;
    place := nextval('event_ordinals');
    if o.key is not null then
      bytes_now := bytes_now + keep_key(o.key, o.hash, o.expires, null, o.id);
      keys := keys || jsonb_build_object(o.key, jsonb_build_object('hash', o.hash, 'event', o.id));
    end if;
    accepted := accepted || cardinality(results);
    ordinals := ordinals || place;
    results := results || to_json(place);
    news := news || json_build_object('name', 'event.queued', 'eventId', o.id, 'agentName', o.agent);
    agents := agents || o.agent;
    open_now := open_now + 1;
    bytes_now := bytes_now + event_bytes(o.size);
    keep := o.keep;
    last_at := o.now;
    if o.beat and not o.agent = any (asking) then
      asking := asking || o.agent;
    end if;
  end loop;
  if cardinality(accepted) = 0 then
    return json_build_object('results', results);
  end if;
  insert into events (ordinal, event_id, agent, text, metadata, size, caller, created_at, delivery_id, is_recorded)
  select new.ordinal, of.id, of.agent, of.text, of.metadata, of.size, of.caller, of.now, of.delivery, of.delivery is not null
  from rows from (json_to_recordset(orders) as (
    id text, agent text, text text, metadata text, size integer, caller text, now bigint, delivery text
  )) with ordinality as of (id, agent, text, metadata, size, caller, now, delivery, n)
  join unnest(accepted, ordinals) as new (n, ordinal) on new.n = of.n - 1;
  for n in 1 .. cardinality(repeats) loop
    select * into event from events where event_id = repeated[n];
    results[repeats[n]] := json_build_object('event', event_json(event));
  end loop;
  select jsonb_object_agg('waiting ' || agent, n) into deltas
  from (select agent, count(*) as n from unnest(agents) as of (agent) group by agent) as of_agents;
  deltas := deltas || jsonb_build_object('events', cardinality(accepted), 'bytes', bytes_now - bytes_before);
  if deliveries is not null then
    deltas := deltas || record_deliveries(deliveries, accepted, ring);
  end if;
  if cardinality(asking) > 0 then
    sooner := ask_beats(asking, at_time);
  end if;
  entries := append_gateway(cardinality(news), array_to_json(news)::text, last_at, keep);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'results', results, 'counts', deltas, 'gateway', entries, 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

create or replace function requeue_event(in_id text, at_wall bigint, beat_now boolean, keep integer, in_lane text, at_ms double precision)
returns json language plpgsql as $$
declare
  event events;
  entry json;
  deltas jsonb;
  sooner json[];
  entries json;
begin
  select * into event from events where event_id = in_id for no key update;
  if not found then
    return null;
  end if;
  if event.state <> 'dead' then
    return json_build_object('event', event_json(event));
  end if;
  -- What was recorded of it was finished as it died.
  update events set state = 'queued', attempts = 0, ended_at = null, is_recorded = false, ordinal = nextval('event_ordinals')
  where event_id = in_id returning * into event;
  if beat_now then
    sooner := ask_beats(array[event.agent], engine_time(at_ms));
  end if;
  entry := json_build_object('name', 'event.queued', 'eventId', in_id, 'agentName', event.agent);
  entries := append_gateway(1, json_build_array(entry)::text, at_wall, keep);
  deltas := jsonb_build_object('events', 1, 'dead', -1, 'waiting ' || event.agent, 1);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'event', event_json(event), 'counts', deltas, 'gateway', entries, 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

create or replace function sweep_events(before bigint, most integer, out gone integer, out deltas jsonb) language sql as $$
  with gone as (
    delete from events where event_id in (
      select event_id from events where ended_at < before order by ended_at limit most for update skip locked
    ) returning size, state
  )
  select count(*)::integer, jsonb_build_object(
    'bytes', -coalesce(sum(event_bytes(size)), 0), 'dead', -count(*) filter (where state = 'dead')
  ) from gone
$$;
`;
