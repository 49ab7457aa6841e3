/** Events that turns work on, and how they end. */
export const EVENT_BATCH_FUNCTIONS = /* sql */ `
-- The turn that works on it.
create or replace function taken_by(event events) returns text language sql stable as $$
  select turn_id from event_batches where agent = event.agent and event.ordinal = any (ordinals)
$$;

-- Those that a turn of the agent works on.
create or replace function taken_events(in_agent text) returns bigint[] language plpgsql stable as $$
begin
  return array(select unnest(ordinals) from event_batches where agent = in_agent);
end
$$;

-- Their ordinals, where all of them wait for this agent and no turn works on them; else null. Held from then on.
create or replace function free_events(ids text[], in_agent text) returns bigint[] language plpgsql as $$
declare
  waiting bigint[];
begin
  -- By id alone: a plan that goes through all that wait takes longer the more do.
  select array_agg(held.ordinal) filter (where held.state = 'queued' and held.agent = in_agent) into waiting
  from (select ordinal, state, agent from events where event_id = any (ids) order by ordinal for no key update) as held;
  -- A statement of its own: it sees what was taken while the first one waited.
  if coalesce(cardinality(waiting), 0) <> cardinality(ids) or exists (select from event_batches where agent = in_agent and ordinals && waiting) then
    return null;
  end if;
  return coalesce(waiting, '{}');
end
$$;

-- With turns that end: [{ turn, agent, completed, reason, deliveries }], the last those whose work ended before the turn's events.
create or replace function finish_events(ends json, at_wall bigint, out deltas jsonb, out told json) language plpgsql as $$
declare
  one record;
  batch event_batches;
  sums record;
  handled_by text;
  keep integer;
  ended integer := 0;
  news text[] := '{}';
  recorded text[] := '{}';
begin
  deltas := '{}';
  for one in select * from json_to_recordset(ends) as of (turn text, agent text, completed boolean, reason text, deliveries text[]) loop
    recorded := recorded || one.deliveries;
    delete from event_batches where turn_id = one.turn returning * into batch;
    continue when not found;
    keep := batch.stream_keep;
    handled_by := ',"agentName":' || to_json(one.agent) || ',"turnId":' || to_json(one.turn) || '}';
    with done as (
      update events set
        state = case when one.completed then 'handled' when attempts + 1 < batch.most_attempts then 'queued' else 'dead' end,
        attempts = case when one.completed then attempts else attempts + 1 end,
        turn_id = one.turn,
        reason = case when one.completed then reason else one.reason end,
        ended_at = case when one.completed or attempts + 1 >= batch.most_attempts then at_wall end
      where ordinal = any (batch.ordinals)
      returning ordinal, event_id, state, attempts, is_recorded, delivery_id
    )
    select
      (count(*) filter (where state = 'handled'))::integer as handled,
      (count(*) filter (where state = 'dead'))::integer as dead,
      count(*) filter (where state = 'queued') as back,
      string_agg(case
        when state = 'handled' then '{"name":"event.handled","eventId":' || to_json(event_id) || handled_by
        else json_build_object('name', 'event.dead', 'eventId', event_id, 'agentName', one.agent, 'attempts', attempts, 'reason', one.reason)::text
      end, ',' order by ordinal) filter (where state <> 'queued') as news,
      array_agg(delivery_id order by ordinal) filter (where state <> 'queued' and is_recorded) as recorded
    into sums from done;
    deltas := merge_counts(deltas, jsonb_build_object('events', -sums.handled - sums.dead, 'dead', sums.dead, 'waiting ' || one.agent, sums.back));
    ended := ended + sums.handled + sums.dead;
    news := news || sums.news;
    recorded := recorded || sums.recorded;
  end loop;
  perform finish_deliveries(recorded);
  told := append_gateway(ended, '[' || array_to_string(news, ',') || ']', at_wall, keep);
end
$$;

-- The three by which version 1 took events and ended them: its functions may run while these take their place.
create or replace function can_take_events(ids text[], in_agent text) returns boolean language plpgsql as $$
begin
  return free_events(ids, in_agent) is not null;
end
$$;

create or replace function take_events(ids text[], in_agent text, in_turn text, in_most_attempts integer, keep integer) returns void language plpgsql as $$
begin
  insert into event_batches (turn_id, agent, ordinals, most_attempts, stream_keep)
  values (in_turn, in_agent, array(select ordinal from events where event_id = any (ids)), in_most_attempts, keep);
end
$$;

create or replace function end_events(ends json, at_wall bigint) returns json language plpgsql as $$
declare
  ended record;
begin
  ended := finish_events(ends, at_wall);
  return json_build_object('counts', ended.deltas, 'gateway', ended.told);
end
$$;

create or replace function fail_queued_events(in_agent text, in_reason text, at_wall bigint, keep integer, most integer, in_lane text)
returns json language plpgsql as $$
declare
  held bigint[];
  gone integer;
  news text;
  recorded text[];
  told json;
  deltas jsonb;
begin
  held := array(
    select ordinal from events where agent = in_agent and state = 'queued' and ordinal <> all ((select taken_events(in_agent))::bigint[])
    order by ordinal limit most for no key update
  );
  -- A turn may have taken some while this waited for them.
  with done as (
    update events set state = 'dead', reason = in_reason, ended_at = at_wall
    where ordinal = any (held) and state = 'queued' and ordinal <> all ((select taken_events(in_agent))::bigint[])
    returning ordinal, event_id, attempts, is_recorded, delivery_id
  )
  select
    count(*),
    json_agg(json_build_object(
      'name', 'event.dead', 'eventId', event_id, 'agentName', in_agent, 'attempts', attempts, 'reason', in_reason
    ) order by ordinal)::text,
    array_agg(delivery_id order by ordinal) filter (where is_recorded)
  into gone, news, recorded from done;
  perform finish_deliveries(recorded);
  told := append_gateway(gone, news, at_wall, keep);
  deltas := jsonb_build_object('events', -gone, 'dead', gone, 'waiting ' || in_agent, -gone);
  perform add_counts(in_lane, deltas);
  return json_build_object('gone', gone, 'counts', deltas, 'gateway', told);
end
$$;
`;
