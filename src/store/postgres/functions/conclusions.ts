/** What one call has to do once for all the turns that it ended or gave back. */
export const CONCLUSION_FUNCTIONS = /* sql */ `
create or replace function entry_json(e entries) returns json language plpgsql immutable as $$
begin
  return json_build_array(
    e.seq, e.at, e.turn_id, e.name, e.message_id, e.role, e.text, e.outside, e.context, e.attempt, e.input, e.output, e.error, e.detail, e.sizes,
    e.used
  );
end
$$;

-- When each agent's last turn ended, and whether its backend failed in the last that ran to an end.
create or replace function note_ends(ends json, in_lane text) returns json language plpgsql as $$
declare
  answer json;
begin
  with noted as (
    insert into agent_ends (lane, agent, ended_at, failing, failing_at)
    select in_lane, agent, max(at), failing, case when failing is not null then engine_time(null) end
    from (
      select agent, at, (array_agg(failing) filter (where failing is not null) over (
        partition by agent order by n rows between unbounded preceding and unbounded following
      )) as decided
      from rows from (json_to_recordset(ends) as (agent text, at bigint, status text, failing boolean))
        with ordinality as of (agent, at, status, failing, n)
      where status <> 'queued'
    ) as each_of
    cross join lateral (select decided[array_upper(decided, 1)] as failing) as last
    group by agent, failing
    on conflict (lane, agent) do update set
      ended_at = excluded.ended_at,
      failing = coalesce(excluded.failing, agent_ends.failing),
      failing_at = coalesce(excluded.failing_at, agent_ends.failing_at)
    returning agent, ended_at, failing, failing_at
  )
  select coalesce(json_agg(json_build_object('agent', agent, 'endedAt', ended_at, 'failing', failing, 'failingAt', failing_at)), '[]')
  into answer from noted;
  return answer;
end
$$;

-- What belongs to all turns that one call has ended or given back. \`more\`: deltas and changes of the caller's own.
create or replace function conclude(ends json[], deltas jsonb, changes json[], at_wall bigint, in_lane text) returns json language plpgsql as $$
declare
  one record;
  of json;
  events json[] := '{}';
  ended record;
  gateway json;
  has_work boolean := false;
  has_announcement boolean := false;
  compactions text[] := '{}';
  deliveries text[] := '{}';
  told json[] := '{}';
  usage json[] := '{}';
  agents json;
begin
  foreach of in array ends loop
    select * into one from json_to_record(of) as (
      turn text, session bigint, "sessionId" text, agent text, "contextBytes" bigint, "from" integer, through integer, known boolean, status text,
      delivery text, events boolean, reason text, channel text, hops integer, attempt json, "end" json, work boolean, compaction text
    );
    has_work := has_work or coalesce(one.work, false);
    if one.compaction is not null then
      compactions := compactions || one.compaction;
      changes := changes || json_build_array('p', one.compaction);
    end if;
    if not coalesce(one.known, false) then
      told := told || json_build_array(one.session, one."sessionId", one.agent, one."contextBytes", (
        select json_agg(entry_json(e) order by seq) from entries e where session = one.session and seq between one."from" and one.through
      ));
    end if;
    changes := changes || json_build_array('e', one.session, one."sessionId", one.agent, one."contextBytes", one."from", one.through);
    if one.attempt is not null then
      usage := usage || one.attempt;
    end if;
    continue when one.status = 'queued';
    usage := usage || one."end";
    if one.delivery is not null then
      deliveries := deliveries || one.delivery;
    end if;
    if one.events then
      -- What ended before its events ended is let go before their deliveries.
      events := events || json_build_object(
        'turn', one.turn, 'agent', one.agent, 'completed', one.status = 'completed', 'reason', one.reason, 'deliveries', deliveries
      );
      deliveries := '{}';
    end if;
    if one.channel is not null then
      perform add_announcement(one.turn, one."sessionId", one.session, one.agent, one.channel, one.hops, one.delivery, at_wall);
      deltas := merge_counts(deltas, jsonb_build_object('announcements', 1, 'bytes', 500));
      has_announcement := true;
    end if;
  end loop;
  if cardinality(ends) > 0 then
    deltas := merge_counts(deltas, (
      select jsonb_object_agg(name, amount) from (
        select name, sum(amount) as amount
        from json_to_recordset(array_to_json(ends)) as of (agent text, was text, status text, bytes bigint)
        cross join lateral (values
          (was, -1), (was || ' ' || agent, -1),
          ('queued', (status = 'queued')::integer), ('queued ' || agent, (status = 'queued')::integer),
          ('bytes', bytes)
        ) as each_of (name, amount)
        group by name
      ) as sums
    ));
    if cardinality(events) > 0 then
      ended := finish_events(array_to_json(events), at_wall);
      gateway := ended.told;
      deltas := merge_counts(deltas, ended.deltas);
    end if;
    if cardinality(deliveries) > 0 then
      perform finish_deliveries(deliveries);
    end if;
    if cardinality(usage) > 0 then
      deltas := merge_counts(deltas, add_usage(array_to_json(usage), in_lane));
    end if;
    agents := note_ends(array_to_json(ends), in_lane);
  end if;
  if has_work then
    changes := changes || json_build_array('w');
  end if;
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'counts', deltas, 'entries', array_to_json(told), 'work', has_work, 'compactions', compactions, 'announcement', has_announcement,
    'gateway', gateway, 'ends', agents, 'news', keep_news(in_lane, changes), 'changes', array_to_json(changes)
  );
end
$$;
`;
