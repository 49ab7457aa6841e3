/** What the sweep does with what comes in: one slice. */
export const INBOUND_SWEEP_FUNCTIONS = /* sql */ `
-- Answers \`left\` of \`most\` that were not needed.
create or replace function sweep_inbound(
  at_wall bigint, usage_before bigint, current_hour bigint, gateway_before bigint, events_before bigint, most integer, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  deltas jsonb;
  keys record;
  ended record;
  freed json;
  announced integer;
begin
  keys := sweep_keys(at_wall, most);
  ended := sweep_events(events_before, greatest(most - keys.gone, 0));
  deltas := merge_counts(ended.deltas, jsonb_build_object('bytes', -keys.freed));
  deltas := merge_counts(deltas, sweep_usage(usage_before, current_hour));
  freed := free_lost_beats(at_time);
  announced := free_lost_announcements(at_time);
  perform sweep_gateway(gateway_before);
  perform sweep_shared(at_time);
  perform fold_counts();
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'counts', deltas, 'beats', freed, 'beat', json_array_length(freed) > 0, 'announcement', announced > 0,
    'left', most - keys.gone - ended.gone
  );
end
$$;

-- What this node has to know of what other nodes did.
create or replace function poll_inbound(at_ms double precision) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
begin
  return json_build_object(
    'beats', (select coalesce(json_agg(beat_json(beat, at_time)), '[]') from beats as beat),
    'announcement', exists (select from announcements where not is_claimed and due <= at_time),
    'gateway', (select last from gateway_place),
    'keys', (select json_build_array(count(*), max(ordinal), sum(expires_at)::bigint) from api_keys)
  );
end
$$;

-- The counters of all lanes but those of one node.
create or replace function other_counts(node text) returns json language sql stable as $$
  select coalesce(json_object_agg(name, value), '{}')
  from (select name, sum(value) as value from counts where split_part(lane, '/', 1) <> node group by name) as others
$$;

-- Adds up what gateways have counted that are gone, once there are many. One that was thought to be gone counts on in other lanes.
create or replace function fold_counts() returns void language plpgsql as $$
begin
  if (select count(*) from counts) < 5000 then
    return;
  end if;
  with past as (
    delete from counts where lane <> 'past' and split_part(lane, '/', 1) not in (select node from nodes) returning name, value
  )
  insert into counts (lane, name, value) select 'past', name, sum(value) from past group by name order by name
  on conflict (lane, name) do update set value = counts.value + excluded.value;
end
$$;

create or replace function own_counts(node text) returns json language sql stable as $$
  select coalesce(json_object_agg(name, value), '{}')
  from (select name, sum(value) as value from counts where split_part(lane, '/', 1) = node group by name) as own
$$;
`;
