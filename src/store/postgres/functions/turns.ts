/** How turns begin. Whoever changes something of a session holds its row, so that `seq` has no gaps and one turn runs at a time. */
export const TURN_FUNCTIONS = /* sql */ `
create or replace function turn_json(t turns) returns json language sql stable as $$
  select json_build_object('row', row_to_json(t), 'reply', (select text from entries where session = t.session and seq = t.reply_at))
$$;

create or replace function find_turn(in_turn text) returns json language plpgsql stable as $$
begin
  return (
    select turn_json(t) from turns t where t.turn_id = in_turn
      and exists (select from sessions s where s.ordinal = t.session and s.first_seq < t.seq)
  );
end
$$;

-- What a known key answers a repeat with; null for a free one.
create or replace function replay_turn(in_key text, in_hash text, at_wall bigint) returns json language plpgsql stable as $$
declare
  known idempotency_keys;
  turn json;
begin
  -- PostgreSQL 10 takes no first value for a row.
  known := find_key(in_key, at_wall);
  if known.key is null then
    return null;
  elsif known.hash <> in_hash or known.turn_id is null then
    return json_build_object('error', 'idempotency-mismatch', 'detail', 'The key was used with another body.');
  end if;
  turn := find_turn(known.turn_id);
  if turn is null then
    return json_build_object('error', 'turn-not-found', 'detail', 'The turn of this idempotency key is not kept any more.');
  end if;
  return json_build_object('turn', turn);
end
$$;

-- What an order that was kept came to.
create or replace function kept_turn(in_turn text, in_node text) returns json language sql stable as $$
  select json_build_object(
    'session', s.ordinal, 'contextBytes', s.context_bytes, 'seq', t.seq,
    'claimed', t.status = 'running' and t.attempt = 1 and t.node is not distinct from in_node
      and exists (select from entries e where e.session = t.session and e.seq = t.seq + 1 and e.turn_id = t.turn_id and e.name = 'turn.started')
  )
  from turns t join sessions s on s.ordinal = t.session where t.turn_id = in_turn
$$;

-- The limit of its session that a new turn would pass, or what else it is refused for.
create or replace function refuse_turn(s sessions, in_agent text, per_session integer, most_messages integer) returns json language plpgsql immutable as $$
begin
  return case
    when s.agent <> in_agent then
      json_build_object('error', 'session-conflict', 'detail', 'The session belongs to the agent ' || s.agent || '.')
    when s.turns_queued >= per_session then
      json_build_object('error', 'session-busy', 'detail', s.turns_queued || ' turns wait in the session, limits.turnsPerSession.')
    when s.message_count - s.compacted_count >= most_messages then json_build_object(
      'error', 'session-full', 'detail', 'The session holds ' || s.message_count - s.compacted_count || ' messages, limits.messagesPerSession.'
    )
  end;
end
$$;

-- \`orders\`: what startTurn takes, each with its place \`n\`; answers a result for each, in that order. \`again\`: some of them may be kept
-- already, by a call whose answer was lost.
create or replace function start_turns(orders json, deliveries json, ring json, again boolean, in_lane text, at_ms double precision) returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  -- Without the texts, which take most of the time that reading takes.
  heads constant json := (
    select json_agg(row_to_json(of)) from json_to_recordset(orders) as of (
      n integer, now bigint, session text, agent text, counted text, surface text, caller text, size integer, key text
    )
  );
  order_base constant bigint := nextval('ready_orders') * 1024;
  o record;
  s sessions;
  results json[] := '{}';
  changes json[] := '{}';
  accepted integer[] := '{}';
  looked_at text[] := '{}';
  busy text[] := '{}';
  refused json;
  is_new boolean;
  is_claimed boolean;
  is_ready boolean;
  taken bigint[];
  has_work boolean := false;
  made integer := 0;
  -- What this call adds to what its node knew.
  waiting integer := 0;
  grown bigint := 0;
  deltas jsonb := '{}';
begin
  perform lock_keys((select array_agg(key) from json_to_recordset(heads) as of (key text)));
  perform from sessions where session_id in (select session from json_to_recordset(heads) as of (session text)) order by session_id for update;
  for o in
    select * from json_to_recordset(orders) as of (
      n integer, now bigint, turn text, message text, session text, agent text, channel text, "user" text, surface text, caller text,
      text text, bytes integer, size integer, outside boolean, context text, model text, counted text, skills json, waited boolean,
      key text, hash text, expires bigint, delivery text, per_session integer, messages integer, queued bigint, most_queued bigint, held bigint, most_held bigint,
      events text[], max_attempts integer, keep integer, "to" text, hops integer,
      node text, lease double precision, reply text, claim_now bigint
    ) order by session collate "C", n
  loop
    if again then
      results[o.n] := kept_turn(o.turn, o.node);
      continue when results[o.n] is not null;
    end if;
    if o.key is not null then
      refused := replay_turn(o.key, o.hash, o.now);
      if refused is not null then
        results[o.n] := refused;
        continue;
      end if;
    end if;
    select * into s from sessions where session_id = o.session for update;
    is_new := s.ordinal is null;
    refused := case when not is_new then refuse_turn(s, o.agent, o.per_session, o.messages) end;
    if refused is null then
      refused := case
        when o.queued + waiting >= o.most_queued then
          json_build_object('error', 'gateway-busy', 'detail', o.queued + waiting || ' turns wait, limits.turns.')
        when o.held + grown >= o.most_held then
          json_build_object('error', 'store-full', 'detail', 'The store holds ' || o.held + grown || ' bytes, limits.storeBytes.')
      end;
    end if;
    taken := case when refused is null and o.events is not null then free_events(o.events, o.agent) end;
    if refused is null and o.events is not null and taken is null then
      refused := json_build_object('error', 'internal', 'detail', 'An event is not there to be taken.');
    end if;
    if refused is not null then
      results[o.n] := refused;
      continue;
    end if;
    if is_new then
      insert into sessions (session_id, agent, channel, user_id, created_at, updated_at)
      values (o.session, o.agent, o.channel, o."user", o.now, o.now)
      on conflict (session_id) do nothing returning * into s;
      if s.ordinal is null then
        -- Another gateway was faster.
        select * into s from sessions where session_id = o.session for update;
        refused := refuse_turn(s, o.agent, o.per_session, o.messages);
        if refused is not null then
          results[o.n] := refused;
          continue;
        end if;
      else
        made := made + 1;
      end if;
    end if;

    is_claimed := o.node is not null and s.open = 0;
    if is_claimed then
      if o.agent <> all (looked_at) then
        looked_at := looked_at || o.agent;
        -- Some are ready for longer than a claim takes: there is no place, and they go first. Or the agent is paused.
        if exists (select from turns where agent = o.agent and ready_at <= at_time - 250)
          or exists (select from beats where agent = o.agent and paused_at is not null) then
          busy := busy || o.agent;
        end if;
      end if;
      is_claimed := o.agent <> all (busy);
    end if;
    is_ready := s.open = 0 and not is_claimed;
    if is_claimed then
      insert into entries (session, seq, at, turn_id, name, message_id, role, text, outside, context, attempt) values
        (s.ordinal, s.last_seq + 1, o.now, o.turn, 'message.created', o.message, 'user', o.text, o.outside, o.context, null),
        (s.ordinal, s.last_seq + 2, o.now, o.turn, 'turn.queued', null, null, null, null, null, null),
        (s.ordinal, s.last_seq + 3, o.claim_now, o.turn, 'turn.started', null, null, null, null, null, 1),
        (s.ordinal, s.last_seq + 4, o.claim_now, o.turn, 'message.created', o.reply, 'assistant', '', false, null, null);
    else
      insert into entries (session, seq, at, turn_id, name, message_id, role, text, outside, context) values
        (s.ordinal, s.last_seq + 1, o.now, o.turn, 'message.created', o.message, 'user', o.text, o.outside, o.context),
        (s.ordinal, s.last_seq + 2, o.now, o.turn, 'turn.queued', null, null, null, null, null);
    end if;
    insert into turns (
      turn_id, session, session_id, agent, surface, caller, status, attempt, created_at, started_at, model, counted_model, skill_ids,
      message_id, seq, delivery_id, waited, channel, hops, has_events, reply_message_id, node, lease_ends, ready_at, ready_order
    ) values (
      o.turn, s.ordinal, o.session, o.agent, o.surface, o.caller, case when is_claimed then 'running' else 'queued' end,
      is_claimed::integer, o.now, case when is_claimed then o.claim_now end, o.model, o.counted, o.skills,
      o.message, s.last_seq + 2, o.delivery, o.waited, o."to", o.hops, o.events is not null, case when is_claimed then o.reply end,
      case when is_claimed then o.node end, case when is_claimed then at_time + o.lease end,
      case when is_ready then at_time end, case when is_ready then order_base + o.n end
    );
    update sessions set
      updated_at = case when is_claimed then o.claim_now else o.now end,
      last_seq = last_seq + case when is_claimed then 4 else 2 end,
      message_count = message_count + 1,
      turns_queued = turns_queued + (not is_claimed)::integer,
      open = open + 1,
      context_bytes = context_bytes + o.bytes,
      bytes = bytes + o.size
    where ordinal = s.ordinal;
    if o.key is not null then
      deltas := merge_counts(deltas, jsonb_build_object('bytes', keep_key(o.key, o.hash, o.expires, o.turn, null)));
    end if;
    if o.events is not null then
      insert into event_batches (turn_id, agent, ordinals, most_attempts, stream_keep) values (o.turn, o.agent, taken, o.max_attempts, o.keep);
      deltas := merge_counts(deltas, jsonb_build_object('waiting ' || o.agent, -cardinality(o.events)));
    end if;
    if is_ready then
      has_work := true;
    end if;
    waiting := waiting + (not is_claimed)::integer;
    grown := grown + o.size;
    accepted := accepted || o.n;
    results[o.n] := json_build_object(
      'session', s.ordinal, 'contextBytes', s.context_bytes + o.bytes, 'seq', s.last_seq + 2, 'claimed', is_claimed
    );
    changes := changes || json_build_array(
      'e', s.ordinal, o.session, o.agent, s.context_bytes + o.bytes, s.last_seq + 1, s.last_seq + case when is_claimed then 4 else 2 end
    );
  end loop;
  if cardinality(accepted) = 0 then
    return json_build_object('results', results);
  end if;

  deltas := merge_counts(deltas, record_deliveries(deliveries, accepted, ring));
  deltas := merge_counts(deltas, add_usage((
    select json_agg(json_build_object(
      'hour', now - now % 3600000, 'agent', agent, 'model', counted, 'surface', surface, 'caller', caller, 'messages', 1
    ))
    from json_to_recordset(heads) as of (n integer, now bigint, agent text, counted text, surface text, caller text) where n = any (accepted)
  ), in_lane));
  deltas := merge_counts(deltas, (
    select jsonb_object_agg(name, amount) from (
      select name, sum(amount) as amount
      from json_to_recordset(heads) as of (n integer, agent text, size integer)
      cross join lateral (select (results[n]->>'claimed')::boolean as began offset 0) as how
      cross join lateral (values
        (case when began then 'running' else 'queued' end, 1),
        (case when began then 'running ' else 'queued ' end || agent, 1),
        ('bytes', size)
      ) as each_of (name, amount)
      where n = any (accepted)
      group by name
    ) as sums
  ));
  deltas := merge_counts(deltas, jsonb_build_object('sessions', made, 'bytes', made * 300));
  if has_work then
    changes := changes || json_build_array('w');
  end if;
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'results', results, 'counts', deltas, 'work', has_work, 'news', keep_news(in_lane, changes), 'changes', array_to_json(changes)
  );
end
$$;
`;
