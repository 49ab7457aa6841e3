/** Compactions: places in a session's queue beside its turns. */
export const COMPACTION_FUNCTIONS = /* sql */ `
create or replace function queue_compaction(
  in_id text, in_session text, in_node text, lease_ms double precision, per_session integer, at_ms double precision
) returns json language plpgsql as $$
declare
  s sessions;
  waiting integer;
  made compactions;
begin
  select * into s from sessions where session_id = in_session for update;
  if s.ordinal is null then
    return json_build_object('error', 'session-not-found', 'detail', 'No session has the id ' || in_session || '.');
  end if;
  waiting := s.turns_queued + (select count(*) from compactions where session = s.ordinal);
  if waiting >= per_session then
    return json_build_object('error', 'session-busy', 'detail', waiting || ' turns and compactions wait in the session.');
  end if;
  insert into compactions (compaction_id, session, place, node, lease_ends)
  values (in_id, s.ordinal, s.last_seq, in_node, engine_time(at_ms) + lease_ms) returning * into made;
  update sessions set open = open + 1 where ordinal = s.ordinal;
  return json_build_object('agent', s.agent, 'seq', s.last_seq, 'isFirst', is_first(made));
end
$$;

-- Takes a compaction out of its session's queue; answers who may begin then.
create or replace function leave_queue(c compactions, at_time double precision, out work boolean, out compaction text) language plpgsql as $$
declare
  was_first constant boolean := is_first(c);
begin
  work := false;
  delete from compactions where compaction_id = c.compaction_id;
  update sessions set open = open - 1 where ordinal = c.session;
  if was_first then
    select next.work, next.compaction into work, compaction from pass_on(c.session, at_time) as next;
  end if;
end
$$;

-- \`done\`: { summary, outside, through, except, before, after, freedBytes, size }, or null.
create or replace function end_compaction(in_id text, in_session text, in_node text, at_wall bigint, done json, in_lane text, at_ms double precision)
returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  s sessions;
  c compactions;
  next record;
  can_end boolean;
  told json := '[]';
  changes json[] := '{}';
  deltas jsonb := '{}';
begin
  select * into s from sessions where session_id = in_session for update;
  select * into c from compactions where compaction_id = in_id and session = s.ordinal and node = in_node;
  if c.compaction_id is null then
    return json_build_object('ended', false);
  end if;
  can_end := is_first(c) or done is null;
  if done is not null and can_end then
    update sessions set
      updated_at = at_wall,
      last_seq = last_seq + 1,
      context_bytes = context_bytes - (done->>'freedBytes')::bigint,
      compacted_count = compacted_count + (done->'before'->>'messages')::integer - (done->'after'->>'messages')::integer,
      bytes = bytes + (done->>'size')::integer,
      summary = done->>'summary',
      summary_outside = (done->>'outside')::boolean,
      summary_through = greatest(summary_through, (done->>'through')::integer),
      summary_except = array(select value::integer from json_array_elements_text(done->'except'))
    where ordinal = s.ordinal returning * into s;
    insert into entries (session, seq, at, turn_id, name, sizes)
    values (s.ordinal, s.last_seq, at_wall, '', 'session.compacted', json_build_array(done->'before', done->'after'));
    told := json_build_array(json_build_array(s.ordinal, s.session_id, s.agent, s.context_bytes, (
      select json_agg(entry_json(e)) from entries e where session = s.ordinal and seq = s.last_seq
    )));
    changes := changes || json_build_array('e', s.ordinal, s.session_id, s.agent, s.context_bytes, s.last_seq, s.last_seq);
    deltas := jsonb_build_object('bytes', (done->>'size')::integer);
  end if;
  next := leave_queue(c, at_time);
  if next.compaction is not null then
    changes := changes || json_build_array('p', next.compaction);
  end if;
  if next.work then
    changes := changes || json_build_array('w');
  end if;
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'ended', can_end, 'entries', told, 'work', next.work, 'counts', deltas,
    'compactions', case when next.compaction is null then '[]' else json_build_array(next.compaction) end,
    'news', keep_news(in_lane, changes), 'changes', array_to_json(changes)
  );
end
$$;
`;
