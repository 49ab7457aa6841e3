/** Who may run a turn. One claims at a time; what it has chosen is looked at again behind the locks of the sessions. */
export const CLAIM_FUNCTIONS = /* sql */ `
-- \`free_of\`: by agent, how many it has room for; \`replies\`: ids for the replies; \`first_lane\`: whether one that is waited for goes first.
create or replace function claim_turns(
  at_wall bigint, in_node text, lease_ms double precision, free_of json, replies text[], first_waited boolean, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  most constant integer := cardinality(replies);
  room jsonb := free_of::jsonb - array(select agent from beats where paused_at is not null);
  waited_turns turns[];
  other_turns turns[];
  heads integer[] := '{1, 1}';
  chosen text[] := '{}';
  t turns;
  lanes integer[];
  lane_at integer;
  s sessions;
  claimed json[] := '{}';
  told json[] := '{}';
  changes json[] := '{}';
  deltas jsonb := '{}';
begin
  -- Who finds nothing waits for nobody.
  if exists (
    select from jsonb_each_text(room) as free (agent, room)
    cross join lateral (select from turns where turns.agent = free.agent and ready_at <= at_time limit 1) as r
    where most > 0 and free.room::integer > 0
  ) then
    perform pg_advisory_xact_lock(3, this_schema());
    select array_agg(row(r.*)::turns order by r.ready_at, r.ready_order) filter (where r.waited),
      array_agg(row(r.*)::turns order by r.ready_at, r.ready_order) filter (where not r.waited)
    into waited_turns, other_turns
    from jsonb_each_text(room) as free (agent, room)
    cross join (values (true), (false)) as kinds (waited)
    cross join lateral (
      select * from turns where turns.agent = free.agent and turns.waited = kinds.waited and ready_at <= at_time
      order by ready_at, ready_order limit least(most, free.room::integer)
    ) as r;
  end if;
  while cardinality(chosen) < most loop
    t := null;
    lanes := case when first_waited then '{1, 2}'::integer[] else '{2, 1}' end;
    foreach lane_at in array lanes loop
      loop
        t := case when lane_at = 1 then waited_turns[heads[1]] else other_turns[heads[2]] end;
        exit when t.turn_id is null;
        heads[lane_at] := heads[lane_at] + 1;
        exit when (room->>t.agent)::integer > 0;
      end loop;
      exit when t.turn_id is not null;
    end loop;
    exit when t.turn_id is null;
    first_waited := not t.waited;
    room := jsonb_set(room, array[t.agent], to_jsonb((room->>t.agent)::integer - 1));
    chosen := chosen || t.turn_id;
  end loop;

  if cardinality(chosen) > 0 then
    perform from sessions where ordinal in (select session from turns where turn_id = any (chosen)) order by session_id for update;
    for t in
      select turns.* from unnest(chosen) with ordinality as of (id, n) join turns on turn_id = of.id
      where status = 'queued' and ready_at <= at_time and exists (select from sessions where ordinal = turns.session) order by of.n
    loop
      update turns set
        status = 'running', attempt = attempt + 1, started_at = at_wall, node = in_node, lease_ends = at_time + lease_ms,
        ready_at = null, reply_message_id = replies[cardinality(claimed) + 1]
      where turn_id = t.turn_id returning * into t;
      update sessions set updated_at = at_wall, last_seq = last_seq + 2, turns_queued = turns_queued - 1, bytes = bytes + 150
      where ordinal = t.session returning * into s;
      insert into entries (session, seq, at, turn_id, name, message_id, role, text, outside, attempt) values
        (t.session, s.last_seq - 1, at_wall, t.turn_id, 'turn.started', null, null, null, null, t.attempt),
        (t.session, s.last_seq, at_wall, t.turn_id, 'message.created', t.reply_message_id, 'assistant', '', false, null);
      claimed := claimed || (
        select json_build_object(
          'turn', json_build_object('row', row_to_json(t), 'reply', null), 'replySeq', s.last_seq,
          'text', e.text, 'outside', e.outside, 'context', e.context
        )
        from entries e where session = t.session and seq = t.seq - 1
      );
      told := told || json_build_array(s.ordinal, s.session_id, s.agent, s.context_bytes, (
        select json_agg(entry_json(e) order by seq) from entries e where session = t.session and seq > s.last_seq - 2
      ));
      changes := changes || json_build_array('e', s.ordinal, s.session_id, s.agent, s.context_bytes, s.last_seq - 1, s.last_seq);
      deltas := merge_counts(deltas, jsonb_build_object(
        'queued', -1, 'running', 1, 'queued ' || t.agent, -1, 'running ' || t.agent, 1, 'bytes', 150
      ));
    end loop;
    perform add_counts(in_lane, deltas);
  end if;
  return json_build_object(
    'claimed', claimed, 'missed', cardinality(chosen) - cardinality(claimed), 'firstWaited', first_waited,
    'next', (select min(ready_at) - at_time from turns where ready_at > at_time),
    -- Agents of which the caller did not know that they have turns.
    'unasked', (
      select coalesce(json_agg(agent), '[]') from ready_agents(at_time) as of (agent) where free_of->agent is null
    ),
    'counts', deltas, 'entries', told, 'news', keep_news(in_lane, changes), 'changes', array_to_json(changes)
  );
end
$$;

-- Those of which a turn can be claimed.
create or replace function ready_agents(at_time double precision) returns setof text language sql stable as $$
  with recursive agents as (
    (select agent from turns where ready_at is not null order by agent limit 1)
    union all
    select (select t.agent from turns t where t.ready_at is not null and t.agent > a.agent order by t.agent limit 1)
    from agents a where a.agent is not null
  )
  select agent from agents where agent is not null
    and exists (select from turns t where t.agent = agents.agent and t.ready_at <= at_time)
    and not exists (select from beats b where b.agent = agents.agent and b.paused_at is not null)
$$;

-- Answers the places of those that do not hold any more. One that is held by somebody for a moment is about to end, or to be extended next time.
create or replace function extend_claims(claims json, lease_ms double precision, at_ms double precision) returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
begin
  with held as (
    select t.turn_id from turns t
    where exists (
      select from json_to_recordset(claims) as of ("turnId" text, node text, fence integer)
      where of."turnId" = t.turn_id and of.node = t.node and of.fence = t.attempt
    ) and status = 'running'
    for update skip locked
  )
  update turns set lease_ends = at_time + lease_ms where turn_id in (select turn_id from held);
  with held as (
    select c.compaction_id from compactions c
    where exists (
      select from json_to_recordset(claims) as of ("turnId" text, node text, fence integer)
      where of."turnId" = c.compaction_id and of.node = c.node and of.fence = 1
    )
    for update skip locked
  )
  update compactions set lease_ends = at_time + lease_ms where compaction_id in (select compaction_id from held);
  return (
    select coalesce(json_agg(n - 1 order by n), '[]')
    from rows from (json_to_recordset(claims) as ("turnId" text, node text, fence integer)) with ordinality as of (id, node, fence, n)
    where not exists (
      select from live_turns t where t.turn_id = of.id and t.status = 'running' and t.node = of.node and t.attempt = of.fence
    ) and not exists (select from compactions c where c.compaction_id = of.id and c.node = of.node and of.fence = 1)
  );
end
$$;
`;
