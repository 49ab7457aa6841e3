/** System events. The bytes of one are what it counts for limits.storeBytes. */
export const EVENT_FUNCTIONS = /* sql */ `
create or replace function event_bytes(size integer) returns integer language sql immutable as $$
  select size + 350
$$;

create or replace function event_json(event events) returns json language sql stable as $$
  select row_to_json(event)
$$;

-- Several orders, each kept or refused for itself. \`known_view\`: { open, bytes, ring } as the caller's node knows them; \`again\`: some of these
-- orders may have been kept by a call whose answer was lost.
-- Answers for each order its ordinal, the { event } that it repeats, or { refused, held }.
create or replace function queue_events(orders json, deliveries json, known_view json, again boolean, in_lane text, at_ms double precision)
returns json language plpgsql as $$
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
  if json_array_length(deliveries) > 0 then
    deltas := deltas || record_deliveries(deliveries, accepted, known_view->'ring');
  end if;
  if cardinality(asking) > 0 then
    sooner := ask_beats(asking, at_time);
  end if;
  entries := append_gateway(news, last_at, keep);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'results', results, 'counts', deltas, 'gateway', entries, 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

-- Whether all of them wait for this agent. Held from then on.
create or replace function can_take_events(ids text[], in_agent text) returns boolean language plpgsql as $$
begin
  perform from events where event_id = any (ids) order by ordinal for no key update;
  return cardinality(ids) = (select count(*) from events where event_id = any (ids) and state = 'queued' and agent = in_agent);
end
$$;

-- The turn works on them from now on.
create or replace function take_events(ids text[], in_turn text, in_most_attempts integer, keep integer) returns void language plpgsql as $$
begin
  update events set state = 'taken', turn_id = in_turn, most_attempts = in_most_attempts, stream_keep = keep where event_id = any (ids);
end
$$;

-- With turns that end: [{ turn, agent, completed, reason }]. Answers { counts, gateway }.
create or replace function end_events(ends json, at_wall bigint) returns json language plpgsql as $$
declare
  one record;
  event events;
  deltas jsonb := '{}';
  handled integer := 0;
  dead integer := 0;
  back integer;
  news json[] := '{}';
  recorded text[] := '{}';
  keep integer := 1;
  entries json;
begin
  for one in select * from json_to_recordset(ends) as of (turn text, agent text, completed boolean, reason text) loop
    back := 0;
    for event in select * from events where turn_id = one.turn and state = 'taken' order by ordinal for no key update loop
      keep := event.stream_keep;
      if one.completed then
        update events set state = 'handled', ended_at = at_wall, is_recorded = false where event_id = event.event_id;
        news := news || json_build_object('name', 'event.handled', 'eventId', event.event_id, 'agentName', event.agent, 'turnId', one.turn);
        handled := handled + 1;
      elsif event.attempts + 1 < event.most_attempts then
        update events set state = 'queued', attempts = attempts + 1, reason = one.reason where event_id = event.event_id;
        back := back + 1;
        continue;
      else
        update events set state = 'dead', attempts = attempts + 1, reason = one.reason, ended_at = at_wall, is_recorded = false
        where event_id = event.event_id;
        news := news || json_build_object(
          'name', 'event.dead', 'eventId', event.event_id, 'agentName', event.agent, 'attempts', event.attempts + 1, 'reason', one.reason
        );
        dead := dead + 1;
      end if;
      if event.is_recorded then
        recorded := recorded || event.delivery_id;
      end if;
    end loop;
    if back > 0 then
      deltas := merge_counts(deltas, jsonb_build_object('waiting ' || one.agent, back));
    end if;
  end loop;
  perform finish_deliveries(recorded);
  entries := append_gateway(news, at_wall, keep);
  return json_build_object(
    'counts', merge_counts(deltas, jsonb_build_object('events', -handled - dead, 'dead', dead)), 'gateway', entries
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
  update events set state = 'queued', attempts = 0, ended_at = null, ordinal = nextval('event_ordinals') where event_id = in_id returning * into event;
  if beat_now then
    sooner := ask_beats(array[event.agent], engine_time(at_ms));
  end if;
  entry := json_build_object('name', 'event.queued', 'eventId', in_id, 'agentName', event.agent);
  entries := append_gateway(array[entry], at_wall, keep);
  deltas := jsonb_build_object('events', 1, 'dead', -1, 'waiting ' || event.agent, 1);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'event', event_json(event), 'counts', deltas, 'gateway', entries, 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

create or replace function fail_queued_events(in_agent text, in_reason text, at_wall bigint, keep integer, most integer, in_lane text)
returns json language plpgsql as $$
declare
  event events;
  news json[] := '{}';
  recorded text[] := '{}';
  gone integer;
  deltas jsonb;
  entries json;
begin
  for event in
    select * from events where agent = in_agent and state = 'queued' order by ordinal limit most for no key update
  loop
    continue when event.state <> 'queued';
    update events set state = 'dead', reason = in_reason, ended_at = at_wall, is_recorded = false where event_id = event.event_id;
    news := news || json_build_object(
      'name', 'event.dead', 'eventId', event.event_id, 'agentName', in_agent, 'attempts', event.attempts, 'reason', in_reason
    );
    if event.is_recorded then
      recorded := recorded || event.delivery_id;
    end if;
  end loop;
  gone := cardinality(news);
  perform finish_deliveries(recorded);
  entries := append_gateway(news, at_wall, keep);
  deltas := jsonb_build_object('events', -gone, 'dead', gone, 'waiting ' || in_agent, -gone);
  perform add_counts(in_lane, deltas);
  return json_build_object('gone', gone, 'counts', deltas, 'gateway', entries);
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
