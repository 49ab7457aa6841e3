/** How turns end, or go back to their queue. Who calls holds the session's row; \`conclude\` does once what belongs to many of them. */
export const TURN_END_FUNCTIONS = /* sql */ `
create or replace function usage_json(t turns, at_wall bigint, in_model text, counts json) returns json language plpgsql immutable as $$
begin
  return json_build_object(
    'hour', at_wall - at_wall % 3600000, 'agent', t.agent, 'model', in_model, 'surface', t.surface, 'caller', t.caller,
    counts->>0, 1, 'latency', counts->1, 'input', counts->2, 'output', counts->3, 'more', counts->4
  );
end
$$;

-- \`used\`: { model, input, output, more, latency, answered } of an attempt that reached a backend, or null.
create or replace function attempt_json(t turns, at_wall bigint, used json) returns json language plpgsql immutable as $$
begin
  if used is null then
    return null;
  end if;
  return usage_json(t, at_wall, used->>'model', json_build_array('attempts', used->'latency', used->'input', used->'output', used->'more'));
end
$$;

-- Who is first in the session's queue now may begin.
create or replace function pass_on(in_session bigint, at_time double precision, out work boolean, out compaction text) language plpgsql as $$
declare
  head record;
  place record;
begin
  work := false;
  select turn_id, seq into head from turns where session = in_session and ended_at is null order by seq limit 1;
  select compaction_id, c.place as behind into place from compactions c where session = in_session order by c.place, ordinal limit 1;
  if place.compaction_id is not null and (head.turn_id is null or head.seq > place.behind) then
    compaction := place.compaction_id;
  elsif head.turn_id is not null then
    update turns set ready_at = at_time, ready_order = nextval('ready_orders') * 1024 where turn_id = head.turn_id;
    work := true;
  end if;
end
$$;

-- Ends a queued or running turn; answers what \`conclude\` takes. \`known\`: its node knows what it ended with, and tells of it itself.
create or replace function finish_turn(
  t turns, at_wall bigint, in_status text, reply text, reply_bytes integer, in_error text, in_detail text, used json, at_time double precision,
  known boolean default false
) returns json language plpgsql as $$
declare
  has_reply constant boolean := t.status = 'running' and (in_status = 'completed' or reply <> '');
  used_more constant bigint[] := more_of(used);
  reply_seq integer;
  s sessions;
  next record;
begin
  t.input := coalesce(t.input, 0) + coalesce((used->>'input')::bigint, 0);
  t.output := coalesce(t.output, 0) + coalesce((used->>'output')::bigint, 0);
  t.more := add_more(t.more, used_more);
  update sessions set
    updated_at = at_wall,
    last_seq = last_seq + 1 + has_reply::integer,
    message_count = message_count + has_reply::integer,
    context_bytes = context_bytes + case when has_reply then reply_bytes else 0 end,
    bytes = bytes + 200 + case when has_reply then reply_bytes else 0 end,
    turns_queued = turns_queued - (t.status = 'queued')::integer,
    open = open - 1,
    input = input + coalesce((used->>'input')::bigint, 0),
    output = output + coalesce((used->>'output')::bigint, 0),
    more = add_more(more, used_more)
  where ordinal = t.session returning * into s;
  if has_reply then
    reply_seq := s.last_seq - 1;
    insert into entries (session, seq, at, turn_id, name, message_id, text)
    values (t.session, reply_seq, at_wall, t.turn_id, 'message.completed', t.reply_message_id, reply);
  end if;
  -- The reply of a turn that has one is that of the entry before: its message tells so.
  insert into entries (session, seq, at, turn_id, name, message_id, input, output, error, detail, used) values (
    t.session, s.last_seq, at_wall, t.turn_id, 'turn.' || in_status,
    case when has_reply and in_status <> 'failed' then t.reply_message_id end, t.input, t.output, in_error, in_detail,
    case when t.more is not null or used->>'answered' is not null then json_build_array(t.more, used->>'answered') end
  );
  update turns set
    status = in_status, ended_at = at_wall, reply_at = reply_seq, error = in_error, detail = in_detail, input = t.input, output = t.output,
    more = t.more, model = coalesce(used->>'answered', model), ready_at = null, lease_ends = null
  where turn_id = t.turn_id;
  select false as work, null as compaction into next;
  if s.open > 0 and (t.status = 'running' or t.ready_at is not null) then
    next := pass_on(t.session, at_time);
  end if;
  return json_build_object(
    'turn', t.turn_id, 'session', t.session, 'sessionId', t.session_id, 'agent', t.agent, 'contextBytes', s.context_bytes,
    'from', s.last_seq - has_reply::integer, 'through', s.last_seq, 'known', known, 'message', t.reply_message_id, 'input', t.input, 'output', t.output, 'more', t.more, 'was', t.status, 'status', in_status, 'at', at_wall,
    'failing', case
      when t.status <> 'running' then null
      when in_status = 'completed' then false
      when in_error in ('turn-failed', 'turn-timeout') then true
    end,
    'bytes', 200 + case when has_reply then reply_bytes else 0 end,
    'delivery', t.delivery_id, 'events', t.has_events, 'reason', coalesce(in_detail, in_error, 'The turn was ' || in_status || '.'),
    'channel', case when in_status = 'completed' then t.channel end, 'hops', t.hops,
    'attempt', attempt_json(t, at_wall, used),
    'end', usage_json(t, at_wall, coalesce(used->>'model', t.counted_model), json_build_array(in_status)),
    'work', next.work, 'compaction', next.compaction,
    -- In one piece, as each look into all of this reads it from its beginning.
    'told', case when known then json_build_array(
      t.session, t.agent, s.context_bytes, s.last_seq - has_reply::integer, s.last_seq, t.reply_message_id, t.input, t.output, t.more
    ) end
  );
end
$$;

-- Gives a running turn back to the head of its session's queue; one that was to be cancelled ends as that.
create or replace function requeue_turn(t turns, at_wall bigint, delay double precision, used json, at_time double precision)
returns json language plpgsql as $$
declare
  s sessions;
  attempt constant json := attempt_json(t, at_wall, used);
  ended json;
begin
  if used is not null then
    update turns set
      input = coalesce(input, 0) + (used->>'input')::bigint,
      output = coalesce(output, 0) + (used->>'output')::bigint,
      more = add_more(more, more_of(used)),
      spent_ms = spent_ms + (used->>'latency')::double precision
    where turn_id = t.turn_id returning * into t;
    update sessions set
      input = input + (used->>'input')::bigint, output = output + (used->>'output')::bigint, more = add_more(more, more_of(used))
    where ordinal = t.session;
  end if;
  if t.is_cancelled then
    ended := finish_turn(t, at_wall, 'cancelled', '', 0, null, null, null, at_time);
    return case when attempt is null then ended else (ended::jsonb || jsonb_build_object('attempt', attempt))::json end;
  end if;
  update sessions set
    updated_at = at_wall, last_seq = last_seq + 1, turns_queued = turns_queued + 1, bytes = bytes + 60
  where ordinal = t.session returning * into s;
  insert into entries (session, seq, at, turn_id, name) values (t.session, s.last_seq, at_wall, t.turn_id, 'turn.queued');
  update turns set
    status = 'queued', lease_ends = null, ready_at = at_time + delay, ready_order = nextval('ready_orders') * 1024
  where turn_id = t.turn_id;
  return json_build_object(
    'turn', t.turn_id, 'session', t.session, 'sessionId', t.session_id, 'agent', t.agent, 'contextBytes', s.context_bytes,
    'from', s.last_seq, 'through', s.last_seq, 'was', 'running', 'status', 'queued', 'bytes', 60,
    'attempt', attempt, 'work', true
  );
end
$$;

-- \`ends\`: turns to be ended, or with \`delay\` given back, each with its place \`n\`; answers for each whether its claim held, and of those
-- that are finished what their entries need beside that. \`again\`: some
-- may be kept already, by a call whose answer was lost.
create or replace function end_turns(ends json, again boolean, in_lane text, at_ms double precision) returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  e record;
  t turns;
  done json[] := '{}';
  finished json[] := '{}';
  one json;
  late json[] := '{}';
  lost late_attempts;
  told json[] := '{}';
  answer json;
  results boolean[] := '{}';
  deltas jsonb := '{}';
  newest bigint := 0;
begin
  perform from sessions where session_id in (select session from json_to_recordset(ends) as of (session text)) order by session_id for update;
  for e in
    select * from json_to_recordset(ends) as of (
      n integer, turn text, session text, node text, fence integer, now bigint, status text, reply text, bytes integer,
      error text, detail text, used json, delay double precision
    ) order by n
  loop
    newest := greatest(newest, e.now);
    select * into t from turns where turn_id = e.turn and status = 'running' and node = e.node and attempt = e.fence
      and exists (select from sessions where ordinal = turns.session);
    results[e.n] := t.turn_id is not null;
    if t.turn_id is null and again then
      select * into t from turns where turn_id = e.turn and node = e.node and attempt = e.fence
        and case when e.delay is null then status = e.status and ended_at = e.now else status = 'queued' end;
      if t.turn_id is not null then
        results[e.n] := true;
        told := told || (
          select json_build_array(s.ordinal, s.session_id, s.agent, s.context_bytes, (
            select json_agg(entry_json(row(last.*)::entries) order by seq) from (
              select * from entries where session = s.ordinal and turn_id = e.turn and at >= e.now order by seq
            ) as last
          )) from sessions s where s.ordinal = t.session
        );
        continue;
      end if;
    end if;
    if t.turn_id is null then
      delete from late_attempts where turn_id = e.turn and attempt = e.fence and node = e.node returning * into lost;
      if lost.turn_id is not null and e.used is not null then
        t.agent := lost.agent;
        t.surface := lost.surface;
        t.caller := lost.caller;
        late := late || attempt_json(t, e.now, e.used);
      end if;
    elsif e.delay is not null then
      done := done || requeue_turn(t, e.now, e.delay, e.used, at_time);
    else
      one := finish_turn(t, e.now, e.status, e.reply, e.bytes, e.error, e.detail, e.used, at_time, true);
      done := done || one;
      finished := finished || ('[' || e.n || ', ' || substr(one->>'told', 2))::json;
    end if;
  end loop;
  if cardinality(late) > 0 then
    deltas := add_usage(array_to_json(late), in_lane);
  end if;
  answer := conclude(done, deltas, '{}', newest, in_lane);
  if cardinality(told) > 0 then
    answer := answer::jsonb || jsonb_build_object('entries', (answer->'entries')::jsonb || array_to_json(told)::jsonb);
  end if;
  -- As text: what was told of many events is long, and needs no reading here.
  return left(answer::text, -1) || ',"results":' || array_to_json(results) || ',"finished":' || array_to_json(finished) || '}';
end
$$;

create or replace function cancel_turn(in_turn text, at_wall bigint, in_lane text, at_ms double precision) returns json language plpgsql as $$
declare
  t turns;
  answer json;
begin
  perform from sessions where ordinal = (select session from turns where turn_id = in_turn) for update;
  if found then
    select * into t from turns where turn_id = in_turn and seq > (select first_seq from sessions where ordinal = turns.session);
  end if;
  if t.turn_id is null then
    return json_build_object('error', 'turn-not-found', 'detail', 'No turn has the id ' || in_turn || '.');
  elsif t.ended_at is not null then
    return json_build_object('error', 'turn-ended', 'detail', 'The turn is ' || t.status || '.');
  elsif t.status = 'running' then
    update turns set is_cancelled = true where turn_id = in_turn;
    return json_build_object(
      'turn', find_turn(in_turn), 'cancelled', json_build_array(in_turn),
      'news', keep_news(in_lane, array[json_build_array('c', in_turn)]), 'changes', json_build_array(json_build_array('c', in_turn))
    );
  end if;
  answer := conclude(
    array[finish_turn(t, at_wall, 'cancelled', '', 0, null, null, null, engine_time(at_ms))], '{}', '{}', at_wall, in_lane
  );
  return (answer::jsonb || jsonb_build_object('turn', find_turn(in_turn)))::json;
end
$$;

create or replace function fail_queued_turns(in_agent text, in_error text, in_detail text, at_wall bigint, in_lane text, at_ms double precision)
returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  t turns;
  done json[] := '{}';
  answer json;
begin
  perform from sessions where ordinal in (
    select session from turns where agent = in_agent and ended_at is null and status = 'queued'
  ) order by session_id for update;
  for t in
    select turns.* from turns join sessions on ordinal = session
    where turns.agent = in_agent and ended_at is null and status = 'queued' order by session, seq
  loop
    -- The one before it has made it ready.
    select * into t from turns where turn_id = t.turn_id;
    done := done || finish_turn(t, at_wall, 'failed', '', 0, in_error, in_detail, null, at_time);
  end loop;
  answer := conclude(done, '{}', '{}', at_wall, in_lane);
  return (answer::jsonb || jsonb_build_object('failed', cardinality(done)))::json;
end
$$;
`;
