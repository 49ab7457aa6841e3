/** Beats. Whoever has to do with one holds its row; `noted` is what agentCounts tells: while a beat runs, when that one was due. */
export const BEAT_FUNCTIONS = /* sql */ `
create or replace function beat_json(beat beats, at_time double precision) returns json language plpgsql immutable as $$
begin
  return json_build_object(
    'agent', beat.agent, 'dueIn', beat.due - at_time, 'notedIn', beat.noted - at_time, 'running', beat.is_running, 'noted', beat.noted,
    'pausedAt', beat.paused_at, 'version', beat.version
  );
end
$$;

-- Events came that want these agents' next beats at once. Answers the beats that are due sooner by that.
create or replace function ask_beats(agents text[], at_time double precision) returns json[] language plpgsql as $$
declare
  beat beats;
  sooner json[] := '{}';
begin
  insert into beats (agent) select distinct unnest(agents) order by 1 on conflict do nothing;
  for beat in select * from beats where agent = any (agents) order by agent for no key update loop
    continue when beat.is_asked;
    if beat.is_running then
      update beats set version = version + 1, is_asked = true where agent = beat.agent;
    else
      update beats set version = version + 1, is_asked = true, due = at_time, noted = at_time where agent = beat.agent returning * into beat;
      sooner := sooner || beat_json(beat, at_time);
    end if;
  end loop;
  return sooner;
end
$$;

create or replace function plan_beat(in_agent text, delay double precision, is_soonest boolean, at_ms double precision) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  planned double precision := at_time + delay;
  beat beats;
  is_sooner boolean;
begin
  insert into beats (agent) values (in_agent) on conflict do nothing;
  select * into beat from beats where agent = in_agent for no key update;
  is_sooner := planned is not null and (beat.due is null or planned < beat.due);
  if beat.is_asked or (is_soonest and not is_sooner) then
    return null;
  end if;
  update beats set version = version + 1, due = planned, noted = case when is_running then noted else planned end where agent = in_agent returning * into beat;
  return json_build_object('planned', beat_json(beat, at_time), 'beat', is_sooner and not beat.is_running);
end
$$;

create or replace function claim_beats(agents text[], in_node text, lease_ms double precision, at_ms double precision) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  claims json;
  newest bigint;
begin
  perform from beats
  where agent = any (agents) and paused_at is null and case when is_running then lease_ends <= at_time else due <= at_time end
  order by agent for no key update;
  with claimed as (
    update beats set version = version + 1, is_running = true, is_asked = false, due = null, node = in_node, fence = fence + 1, lease_ends = at_time + lease_ms
    where agent = any (agents) and paused_at is null and case when is_running then lease_ends <= at_time else due <= at_time end
    returning agent, fence
  )
  select json_agg(json_build_object('agent', agent, 'fence', fence) order by agent) into claims from claimed;
  -- An event of which this knows nothing yet asks for its beat behind this transaction.
  select case when is_called then last_value else 0 end into newest from event_ordinals;
  return json_build_object(
    'claims', coalesce(claims, '[]'),
    'through', newest,
    'next', (select min(due) - at_time from beats where agent = any (agents) and paused_at is null and not is_running and due > at_time)
  );
end
$$;

create or replace function extend_beat(in_agent text, in_node text, in_fence bigint, lease_ms double precision, at_ms double precision)
returns boolean language plpgsql as $$
begin
  update beats set lease_ends = engine_time(at_ms) + lease_ms
  where agent = in_agent and is_running and node = in_node and fence = in_fence;
  return found;
end
$$;

-- \`ran\`: { events, turnIds } or null; \`wall\`: the wall clock, for the time of the next.
create or replace function end_beat(
  in_agent text, in_node text, in_fence bigint, delay double precision, ran json, wall bigint, at_wall bigint, keep integer, at_ms double precision
) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  beat beats;
  entry json;
begin
  update beats set
    version = version + 1,
    is_running = false,
    due = case when is_asked then at_time else at_time + delay end,
    noted = case when is_asked then at_time else at_time + delay end
  where agent = in_agent and is_running and node = in_node and fence = in_fence
  returning * into beat;
  if beat.agent is null then
    return null;
  end if;
  if ran is null then
    return json_build_object('planned', beat_json(beat, at_time));
  end if;
  entry := json_build_object(
    'name', 'heartbeat.ran', 'agentName', in_agent, 'events', ran->'events', 'turnIds', ran->'turnIds',
    'nextAt', round(wall + beat.due - at_time)::bigint
  );
  return json_build_object('planned', beat_json(beat, at_time), 'gateway', append_gateway(1, json_build_array(entry)::text, at_wall, keep));
end
$$;

-- Answers since when the agent is paused then.
create or replace function set_paused(in_agent text, in_paused boolean, at_wall bigint, keep integer, at_ms double precision)
returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  beat beats;
  entry json;
begin
  insert into beats (agent) values (in_agent) on conflict do nothing;
  select * into beat from beats where agent = in_agent for no key update;
  if (beat.paused_at is not null) = in_paused then
    return json_build_object('planned', beat_json(beat, at_time), 'isChanged', false);
  end if;
  update beats set version = version + 1, paused_at = case when in_paused then at_wall end where agent = in_agent returning * into beat;
  entry := json_build_object('name', case when in_paused then 'agent.paused' else 'agent.resumed' end, 'agentName', in_agent);
  return json_build_object(
    'planned', beat_json(beat, at_time), 'isChanged', true, 'beat', not in_paused, 'work', not in_paused,
    'gateway', append_gateway(1, json_build_array(entry)::text, at_wall, keep)
  );
end
$$;

-- Those whose node has let their lease end are due again.
create or replace function free_lost_beats(at_time double precision) returns json language sql as $$
  with freed as (
    update beats set version = version + 1, is_running = false, due = at_time, noted = at_time where is_running and lease_ends <= at_time returning *
  )
  select coalesce(json_agg(beat_json(row(freed.*)::beats, at_time)), '[]') from freed
$$;
`;
