/** What time and deletion do to sessions and their turns. */
export const TURN_SWEEP_FUNCTIONS = /* sql */ `
-- Erases a session whose row the caller holds: \`ends\` is for \`conclude\`, the rest for its arguments and its answer.
create or replace function erase_session(
  s sessions, at_wall bigint, at_time double precision, out ends json[], out deltas jsonb, out deleted json, out cancelled json, out turns_ended integer
) language plpgsql as $$
declare
  t turns;
  told json;
begin
  ends := '{}';
  deltas := '{}';
  cancelled := '[]';
  turns_ended := 0;
  delete from compactions where session = s.ordinal;
  for t in select * from turns where session = s.ordinal and ended_at is null and status = 'queued' order by seq desc loop
    -- Nobody begins behind it.
    t.ready_at := null;
    ends := ends || finish_turn(t, at_wall, 'cancelled', '', 0, null, null, null, at_time);
    turns_ended := turns_ended + 1;
  end loop;
  select * into t from turns where session = s.ordinal and status = 'running';
  if t.turn_id is not null then
    turns_ended := turns_ended + 1;
    insert into late_attempts (turn_id, attempt, node, agent, surface, caller, until)
    values (t.turn_id, t.attempt, t.node, t.agent, t.surface, t.caller, at_time + 600000) on conflict do nothing;
    update turns set status = 'cancelled', ended_at = at_wall, lease_ends = null where turn_id = t.turn_id;
    cancelled := json_build_array(t.turn_id);
    ends := ends || json_build_object(
      'turn', t.turn_id, 'session', s.ordinal, 'sessionId', s.session_id, 'agent', t.agent, 'contextBytes', s.context_bytes,
      'from', 1, 'through', 0, 'was', 'running', 'status', 'cancelled', 'at', at_wall, 'bytes', 0, 'delivery', t.delivery_id,
      'events', t.has_events, 'reason', 'Its session was deleted.',
      'end', usage_json(t, at_wall, t.counted_model, json_build_array('cancelled'))
    );
  end if;
  select * into s from sessions where ordinal = s.ordinal;
  deltas := jsonb_build_object('sessions', -1, 'bytes', -s.bytes - 300);
  deltas := merge_counts(deltas, drop_announcements(s.ordinal));
  deltas := merge_counts(deltas, erase_deliveries(s.session_id));
  delete from sessions where ordinal = s.ordinal;
  insert into erased_sessions (session) values (s.ordinal);
  deleted := json_build_array('d', s.ordinal, s.session_id, s.agent, s.context_bytes, s.last_seq + 1, at_wall);
end
$$;

create or replace function delete_session(in_session text, at_wall bigint, in_lane text, at_ms double precision) returns json language plpgsql as $$
declare
  s sessions;
  erased record;
  answer json;
begin
  select * into s from sessions where session_id = in_session for update;
  if s.ordinal is null then
    return json_build_object('found', false);
  end if;
  erased := erase_session(s, at_wall, engine_time(at_ms));
  answer := conclude(
    erased.ends, erased.deltas, array[erased.deleted] || array(select json_build_array('c', id) from json_array_elements_text(erased.cancelled) as of (id)),
    at_wall, in_lane
  );
  return (answer::jsonb || jsonb_build_object(
    'found', true, 'turnsCancelled', erased.turns_ended, 'cancelled', erased.cancelled, 'deleted', json_build_array(erased.deleted)
  ))::json;
end
$$;

-- Rows of sessions that are gone, so many at a time; answers how many went.
create or replace function erase_rows(most integer) returns integer language plpgsql as $$
declare
  gone integer := 0;
  step integer;
  erased bigint;
begin
  while gone < most loop
    select session into erased from erased_sessions order by session limit 1 for update skip locked;
    exit when erased is null;
    delete from entries where session = erased and seq in (
      select seq from entries where session = erased order by seq limit most - gone
    );
    get diagnostics step = row_count;
    gone := gone + step;
    delete from turns where turn_id in (select turn_id from turns where session = erased order by seq limit greatest(most - gone, 1));
    get diagnostics step = row_count;
    gone := gone + step;
    if not exists (select from entries where session = erased) and not exists (select from turns where session = erased) then
      delete from erased_sessions where session = erased;
      gone := gone + 1;
    end if;
  end loop;
  return gone;
end
$$;

-- Claims whose lease ended go back, or fail after so many attempts; compactions whose lease ended leave their queue; old rows go.
create or replace function sweep_turns(
  at_wall bigint, max_attempts integer, lost_error text, lost_detail text, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  t turns;
  c compactions;
  next record;
  done json[] := '{}';
  changes json[] := '{}';
  compactions text[] := '{}';
  has_work boolean := false;
  gone integer;
  answer json;
begin
  if not pg_try_advisory_xact_lock(4, this_schema()) then
    return json_build_object('left', 0);
  end if;
  perform from sessions where ordinal in (
    select session from turns where status = 'running' and lease_ends <= at_time
    union select session from compactions as over where over.lease_ends <= at_time
  ) order by session_id for update;
  for t in select * from turns where status = 'running' and lease_ends <= at_time order by session, seq for update limit 500 loop
    continue when not exists (select from sessions where ordinal = t.session);
    insert into late_attempts (turn_id, attempt, node, agent, surface, caller, until)
    values (t.turn_id, t.attempt, t.node, t.agent, t.surface, t.caller, at_time + 600000) on conflict do nothing;
    if t.attempt < max_attempts or t.is_cancelled then
      done := done || requeue_turn(t, at_wall, 0, null, at_time);
    else
      done := done || finish_turn(t, at_wall, 'failed', '', 0, lost_error, lost_detail, null, at_time);
    end if;
  end loop;
  for c in select * from compactions as over where over.lease_ends <= at_time for update loop
    next := leave_queue(c, at_time);
    has_work := has_work or next.work;
    if next.compaction is not null then
      changes := changes || json_build_array('p', next.compaction);
      compactions := compactions || next.compaction;
    end if;
  end loop;
  if has_work then
    changes := changes || json_build_array('w');
  end if;
  delete from late_attempts where until <= at_time;
  delete from news where at < engine_time(null) - 30000;
  delete from nodes where seen < engine_time(null) - 60000;
  gone := erase_rows(1000);
  if cardinality(done) = 0 and cardinality(changes) = 0 then
    return json_build_object('left', gone);
  end if;
  answer := conclude(done, '{}', changes, at_wall, in_lane);
  return (answer::jsonb || jsonb_build_object(
    'left', gone, 'work', has_work or (answer->>'work')::boolean,
    'compactions', compactions || array(select json_array_elements_text(answer->'compactions'))
  ))::json;
end
$$;

-- Whether a journal begins with the message of a turn that no summary stands for: then nothing of it goes.
create or replace function begins_with_kept(in_session bigint, first integer, summary_through integer) returns boolean language sql stable as $$
  select summary_through < first and (first = 1 or exists (select from turns where session = in_session and seq = first + 1))
$$;

-- Erases of a session's journal what is before the first entry that is to be kept, at most so many; the caller holds its row.
create or replace function age_session(s sessions, bound bigint, most integer) returns jsonb language plpgsql as $$
declare
  cut integer;
  gone record;
  turns_gone record;
begin
  -- The first turn that is to be kept begins with its message.
  select seq - 1 into cut from turns t
  where session = s.ordinal and seq > s.first_seq and (
    ended_at is null or ended_at > bound
    or seq - 1 > s.summary_through or seq - 1 = any (s.summary_except)
    or reply_at > s.summary_through or reply_at = any (s.summary_except)
    or has_announcement_of(turn_id)
  ) order by seq limit 1;
  cut := coalesce(cut, s.last_seq + 1);
  cut := least(cut, (select seq from entries where session = s.ordinal and seq >= s.first_seq and seq < cut and at > bound order by seq limit 1));
  cut := least(cut, s.first_seq + most);
  if cut <= s.first_seq then
    return null;
  end if;
  with gone as (
    delete from entries where session = s.ordinal and seq >= s.first_seq and seq < cut returning text, context
  )
  select coalesce(sum(coalesce(octet_length(text), 0) + coalesce(octet_length(context), 0)), 0) as bytes into gone from gone;
  with gone as (
    delete from turns where session = s.ordinal and seq > s.first_seq and seq <= cut returning delivery_id
  )
  select count(*) as count, coalesce(array_agg(delivery_id) filter (where delivery_id is not null), '{}') as deliveries into turns_gone from gone;
  gone.bytes := least(gone.bytes + turns_gone.count * 800, s.bytes);
  update sessions set first_seq = cut, bytes = bytes - gone.bytes where ordinal = s.ordinal;
  return merge_counts(jsonb_build_object('bytes', -gone.bytes), erase_deliveries_of(turns_gone.deliveries));
end
$$;

-- Sessions past their retention, of those behind \`in_after\`, and heads of journals: a slice. \`next\` is where the following one begins;
-- null behind the last that is old enough. \`kept\`: how many of them stay; \`young\`: when the first one that is too young was made.
create or replace function sweep_sessions(
  in_after bigint, before bigint, webhooks_before bigint, at_wall bigint, most integer, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  known record;
  s sessions;
  looked integer := 0;
  next_after bigint;
  first_young bigint;
  erased record;
  ends json[] := '{}';
  deltas jsonb := '{}';
  aged jsonb;
  deleted json[] := '{}';
  at_limit bigint;
  has_more boolean := false;
  answer json;
begin
  for known in
    select ordinal, session_id, created_at, updated_at, open, first_seq, summary_through from sessions
    where ordinal > in_after order by ordinal limit most
  loop
    -- Those behind it are younger still.
    if known.created_at > greatest(before, webhooks_before) then
      first_young := known.created_at;
      exit;
    end if;
    looked := looked + 1;
    next_after := known.ordinal;
    at_limit := case when known.session_id like 'webhook:%' then webhooks_before else before end;
    continue when known.created_at > at_limit
      or ((known.updated_at > at_limit or known.open > 0) and begins_with_kept(known.ordinal, known.first_seq, known.summary_through));
    if known.updated_at > at_limit or known.open > 0 then
      select * into s from sessions where ordinal = known.ordinal for update;
    else
      -- Whoever holds it uses it.
      select * into s from sessions where ordinal = known.ordinal for update skip locked;
    end if;
    continue when s.ordinal is null;
    if s.updated_at <= at_limit and s.open = 0 and not has_announcement(s.ordinal) then
      erased := erase_session(s, at_wall, at_time);
      ends := ends || erased.ends;
      deltas := merge_counts(deltas, erased.deltas);
      deleted := deleted || erased.deleted;
    elsif not begins_with_kept(s.ordinal, s.first_seq, s.summary_through) then
      aged := age_session(s, at_limit, 500);
      if aged is not null then
        deltas := merge_counts(deltas, aged);
        -- There may be more of it: it is looked at again.
        has_more := true;
        next_after := known.ordinal - 1;
        exit;
      end if;
    end if;
  end loop;
  if looked < most and not has_more then
    next_after := null;
  end if;
  if deltas = '{}' and cardinality(deleted) = 0 then
    return json_build_object('next', next_after, 'kept', looked, 'young', first_young);
  end if;
  answer := conclude(ends, deltas, deleted, at_wall, in_lane);
  return (answer::jsonb || jsonb_build_object(
    'next', next_after, 'kept', looked - cardinality(deleted), 'deleted', array_to_json(deleted)
  ))::json;
end
$$;
`;
