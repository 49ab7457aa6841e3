/** Replies on their way to channels. */
export const ANNOUNCEMENT_FUNCTIONS = /* sql */ `
create or replace function announcement_bytes() returns integer language sql immutable as $$
  select 500
$$;

create or replace function add_announcement(
  in_turn text, in_session text, in_session_ordinal bigint, in_agent text, in_channel text, in_hops integer, in_delivery text, at_wall bigint
) returns void language plpgsql as $$
begin
  insert into announcements (turn_id, session_id, session_ordinal, agent, channel, hops, delivery_id, created_at)
  values (in_turn, in_session, in_session_ordinal, in_agent, in_channel, in_hops, in_delivery, at_wall);
end
$$;

-- Channels with something to claim, or with something that was given back.
create or replace function waiting_channels() returns json language sql stable as $$
  with recursive channels as (
    (select channel from announcements where not is_claimed order by channel limit 1)
    union all
    select (select a.channel from announcements a where not a.is_claimed and a.channel > c.channel order by a.channel limit 1)
    from channels c where c.channel is not null
  )
  select coalesce(json_agg(channel) filter (where channel is not null), '[]') from channels
$$;

-- \`free\`: by channel, how many it has room for. One claims at a time; what it has chosen is looked at again as it is taken.
create or replace function claim_announcements(free json, most integer, in_node text, lease_ms double precision, at_ms double precision)
returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  chosen text[];
  claimed json;
begin
  perform pg_advisory_xact_lock(2, 0);
  chosen := array(
    select oldest.turn_id
    from json_each_text(free) as of (channel, room),
      lateral (
        select turn_id, ordinal from announcements
        where channel = of.channel and not is_claimed and due <= at_time order by ordinal limit of.room::integer
      ) as oldest
    order by oldest.ordinal limit most
  );
  with taken as (
    update announcements set is_claimed = true, node = in_node, fence = fence + 1, lease_ends = at_time + lease_ms
    where turn_id = any (chosen) and not is_claimed returning *
  )
  select json_agg(row_to_json(taken) order by ordinal) into claimed from taken;
  return json_build_object(
    'announcements', coalesce(claimed, '[]'),
    'next', (select min(due) - at_time from announcements where not is_claimed and due > at_time)
  );
end
$$;

create or replace function end_announcement(
  in_turn text, in_node text, in_fence bigint, retry_ms double precision, step text, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  ended announcements;
  deltas jsonb := '{}';
begin
  if retry_ms is null then
    delete from announcements where turn_id = in_turn and is_claimed and node = in_node and fence = in_fence returning * into ended;
  else
    update announcements set is_claimed = false, attempts = attempts + 1, due = engine_time(at_ms) + retry_ms
    where turn_id = in_turn and is_claimed and node = in_node and fence = in_fence returning * into ended;
  end if;
  if ended.turn_id is null then
    return null;
  end if;
  if retry_ms is null then
    deltas := jsonb_build_object('announcements', -1, 'bytes', -announcement_bytes());
  end if;
  if ended.delivery_id is not null then
    deltas := merge_counts(deltas, note_step(ended.delivery_id, step));
  end if;
  perform add_counts(in_lane, deltas);
  return json_build_object('counts', deltas);
end
$$;

-- Of a session that is deleted.
create or replace function drop_announcements(in_session_ordinal bigint) returns jsonb language plpgsql as $$
declare
  dropped bigint;
begin
  delete from announcements where session_ordinal = in_session_ordinal;
  get diagnostics dropped = row_count;
  return case when dropped = 0 then '{}' else jsonb_build_object('announcements', -dropped, 'bytes', -dropped * announcement_bytes()) end;
end
$$;

create or replace function has_announcement(in_session_ordinal bigint) returns boolean language plpgsql as $$
begin
  return exists (select from announcements where session_ordinal = in_session_ordinal);
end
$$;

create or replace function has_announcement_of(in_turn text) returns boolean language plpgsql as $$
begin
  return exists (select from announcements where turn_id = in_turn);
end
$$;

-- Those whose node has let their lease end can be claimed again. Answers how many.
create or replace function free_lost_announcements(at_time double precision) returns integer language sql as $$
  with freed as (
    update announcements set is_claimed = false where is_claimed and lease_ends <= at_time returning 1
  )
  select count(*)::integer from freed
$$;
`;
