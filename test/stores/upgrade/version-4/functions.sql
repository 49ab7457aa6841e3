
-- Leases and delays are by the database's clock, which all gateways share; a test brings its own.
create or replace function engine_time(at_ms double precision) returns double precision language sql volatile as $$
  select coalesce(at_ms, extract(epoch from clock_timestamp())::double precision * 1000)
$$;

-- The schema's own number: advisory locks are the database's, and gateways in another of its schemas are none of ours.
create or replace function this_schema() returns integer language sql stable as $$
  select quote_ident(current_schema())::regnamespace::oid::integer
$$;

-- Keeps what other gateways should know until all have heard of it. Answers its id.
create or replace function keep_news(in_lane text, in_changes json[]) returns bigint language plpgsql as $$
declare
  kept bigint;
begin
  if cardinality(in_changes) > 0 then
    insert into news (lane, at, changes) values (in_lane, engine_time(null), array_to_json(in_changes)::text) returning id into kept;
  end if;
  return kept;
end
$$;

-- What a gateway asks once a second: that it is there, what it may have missed, and what the others have counted.
create or replace function poll(in_node text, news_after bigint, at_ms double precision) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(null);
  is_new boolean;
begin
  insert into nodes (node, seen) values (in_node, at_time) on conflict (node) do update set seen = excluded.seen
  returning xmax = 0 into is_new;
  return json_build_object(
    'isNew', is_new,
    'nodes', (select count(*) from nodes where node <> in_node and seen > at_time - 10000),
    'news', (select coalesce(json_agg(id order by id), '[]') from news where id > news_after and split_part(lane, '/', 1) <> in_node),
    'ready', exists (select from ready_agents(engine_time(at_ms))),
    'cancelled', (select coalesce(json_agg(turn_id), '[]') from turns where status = 'running' and is_cancelled),
    'compactions', (select coalesce(json_agg(compaction_id), '[]') from compactions c where is_first(c)),
    'ends', (
      select coalesce(json_agg(json_build_object('agent', agent, 'endedAt', ended_at, 'failing', failing, 'failingAt', failing_at)), '[]')
      from agent_ends where split_part(lane, '/', 1) <> in_node
    )
  );
end
$$;

create or replace function read_news(ids bigint[]) returns json language sql stable as $$
  select coalesce(json_agg(json_build_array(id, changes) order by id), '[]') from news where id = any (ids)
$$;

create or replace function is_first(compaction compactions) returns boolean language sql stable as $$
  select not exists (select from turns where session = compaction.session and ended_at is null and seq <= compaction.place)
    and not exists (
      select from compactions other
      where other.session = compaction.session and (other.place, other.ordinal) < (compaction.place, compaction.ordinal)
    )
$$;

create or replace function leave_node(in_node text) returns void language sql as $$
  delete from nodes where node = in_node
$$;


-- To be called last: the rows of a lane are held until the transaction ends.
create or replace function add_counts(in_lane text, deltas jsonb) returns void language plpgsql as $$
begin
  insert into counts (lane, name, value)
  select in_lane, key, of.value::bigint from jsonb_each_text(deltas) as of where of.value <> '0' order by key
  on conflict (lane, name) do update set value = counts.value + excluded.value;
end
$$;

create or replace function merge_counts(a jsonb, b jsonb) returns jsonb language plpgsql immutable as $$
declare
  one record;
begin
  if a is null or a = '{}' then
    return coalesce(b, '{}');
  end if;
  for one in select key, value::bigint as value from jsonb_each_text(coalesce(b, '{}')) loop
    a := a || jsonb_build_object(one.key, coalesce((a->>one.key)::bigint, 0) + one.value);
  end loop;
  return a;
end
$$;


-- The first locks of a transaction, in an order that all take them in.
create or replace function lock_keys(keys text[]) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(1, hash)
  from (select distinct hashtext(key) as hash from unnest(keys) as of (key) where key is not null order by 1) as hashes;
end
$$;

-- Stable, so that it sees what its caller sees: with a look of its own it could find a key whose turn the caller does not see yet.
create or replace function find_key(in_key text, at_wall bigint) returns idempotency_keys language plpgsql stable as $$
declare
  known idempotency_keys;
begin
  select * into known from idempotency_keys where key = in_key and expires_at > at_wall;
  return known;
end
$$;

create or replace function key_bytes(in_key text) returns integer language sql immutable as $$
  select octet_length(in_key) + 150
$$;

-- Answers how many bytes it counts for: none where it stands in the place of one that has ended and was not swept yet.
create or replace function keep_key(in_key text, in_hash text, in_expires bigint, in_turn text, in_event text) returns integer language plpgsql as $$
declare
  bytes integer;
begin
  insert into idempotency_keys (key, hash, expires_at, turn_id, event_id) values (in_key, in_hash, in_expires, in_turn, in_event)
  on conflict (key) do update set
    hash = excluded.hash, expires_at = excluded.expires_at, turn_id = excluded.turn_id, event_id = excluded.event_id
  returning case when xmax = 0 then key_bytes(key) else 0 end into bytes;
  return bytes;
end
$$;

-- Answers by how many bytes the store holds less, and how many went.
create or replace function sweep_keys(at_wall bigint, most integer, out freed bigint, out gone integer) language sql as $$
  with gone as (
    delete from idempotency_keys where key in (
      select key from idempotency_keys where expires_at <= at_wall order by expires_at limit most for update skip locked
    ) and expires_at <= at_wall returning key
  )
  select coalesce(sum(key_bytes(key)), 0)::bigint, count(*)::integer from gone
$$;


-- `news`: so many as a JSON array. Answers it with its place. Near the end of a transaction: the counter is held until that ends.
create or replace function append_gateway(added integer, news text, at_wall bigint, keep integer) returns json language plpgsql as $$
declare
  first_before bigint;
  first_now bigint;
  before bigint;
begin
  if added = 0 then
    return null;
  end if;
  select first, last into first_before, before from gateway_place for no key update;
  first_now := greatest(first_before, before + added - keep + 1);
  update gateway_place set first = first_now, last = before + added;
  insert into gateway_entries (first, last, at, news) values (before + 1, before + added, at_wall, news);
  if first_now > first_before then
    delete from gateway_entries where first < first_now and last < first_now;
  end if;
  return '{"first":' || before + 1 || ',"at":' || at_wall || ',"news":' || news || '}';
end
$$;

create or replace function append_gateway_entry(news text, at_wall bigint, keep integer) returns json language plpgsql as $$
begin
  return json_build_object('gateway', append_gateway(1, '[' || news || ']', at_wall, keep));
end
$$;

-- One statement, and so one moment.
create or replace function read_gateway(after bigint, most integer) returns json language plpgsql as $$
declare
  answer json;
begin
  select json_build_object('first', place.first, 'last', place.last, 'entries', ('[' || coalesce((
    select string_agg('{"seq":' || seq || ',"at":' || at || ',' || substr(entry::text, 2), ',' order by seq)
    from (
      select rows.first + of.n - 1 as seq, rows.at, of.entry
      from (
        -- The first of them may hold what is before.
        select * from gateway_entries
        where first >= coalesce((select max(first) from gateway_entries where first <= after + 1), 0) order by first limit most + 1
      ) as rows
      cross join lateral json_array_elements(rows.news::json) with ordinality as of (entry, n)
      where rows.first + of.n - 1 > after and rows.first + of.n - 1 >= place.first
      order by 1 limit most
    ) as page
  ), '') || ']')::json)
  into answer from gateway_place as place;
  return answer;
end
$$;

create or replace function sweep_gateway(before bigint) returns void language plpgsql as $$
declare
  oldest bigint;
begin
  if not exists (select from (select at from gateway_entries order by first limit 1) as head where at < before) then
    return;
  end if;
  perform from gateway_place for no key update;
  select min(first) into oldest from gateway_entries where at >= before;
  update gateway_place set first = greatest(first, coalesce(oldest, last + 1));
  delete from gateway_entries where last < (select first from gateway_place);
end
$$;


-- `ring`: { size, bytes, entries, most } of all but refused ones, as the caller's node knows it; `accepted`: those orders' deliveries, or all.
create or replace function record_deliveries(deliveries json, accepted integer[], ring json) returns jsonb language plpgsql as $$
declare
  added integer;
  added_bytes bigint;
  gone jsonb;
begin
  with kept as (
    insert into deliveries (
      delivery_id, at, surface, kept, request_id, turn_id, session_id, event_id, mapping, sender_id, record, steps, step_count, body, bytes
    )
    select of.id, of.at, of.surface, of.kept, of.request, of.turn, of.session, of.event, of.mapping, of.sender, of.record, of.steps,
      of.stepcount, of.body, of.bytes
    from rows from (json_to_recordset(deliveries) as (
      "order" integer, id text, at bigint, surface text, kept text, request text, turn text, session text, event text,
      mapping text, sender text, record text, steps text, stepcount smallint, body text, bytes integer
    )) with ordinality as of ("order", id, at, surface, kept, request, turn, session, event, mapping, sender, record, steps, stepcount, body, bytes, n)
    where accepted is null or of."order" = any (accepted)
    order by of.n
    returning bytes
  )
  select count(*), coalesce(sum(bytes), 0) into added, added_bytes from kept;
  if added = 0 then
    return '{}';
  end if;
  gone := make_room(false, added, added_bytes, ring);
  return jsonb_build_object(
    'deliveries', added + coalesce((gone->>'deliveries')::integer, 0), 'deliveryBytes', added_bytes + coalesce((gone->>'deliveryBytes')::bigint, 0)
  );
end
$$;

-- Lets go for what was added. Of what others have added as well, or where the limits became smaller, one transaction at a time lets
-- go more: all of them would let go too much.
create or replace function make_room(of_refused boolean, added integer, added_bytes bigint, ring json) returns jsonb language plpgsql as $$
declare
  over bigint := (ring->>'size')::bigint + added - (ring->>'entries')::bigint;
  over_bytes bigint := (ring->>'bytes')::bigint + added_bytes - (ring->>'most')::bigint;
  size bigint;
  bytes bigint;
begin
  if over > added or over_bytes > added_bytes then
    if pg_try_advisory_xact_lock(5 + of_refused::integer, this_schema()) then
      select
        sum(case name when 'deliveries' then value when 'refused' then -value end),
        sum(case name when 'deliveryBytes' then value when 'refusedBytes' then -value end)
      into size, bytes from counts where name in ('deliveries', 'refused', 'deliveryBytes', 'refusedBytes');
      if of_refused then
        select sum(case name when 'refused' then value end), sum(case name when 'refusedBytes' then value end)
        into size, bytes from counts where name in ('refused', 'refusedBytes');
      end if;
      over := coalesce(size, 0) + added - (ring->>'entries')::bigint;
      over_bytes := coalesce(bytes, 0) + added_bytes - (ring->>'most')::bigint;
    else
      over := least(over, added);
      over_bytes := least(over_bytes, added_bytes);
    end if;
  end if;
  return case when over > 0 or over_bytes > 0 then let_go(of_refused, over, over_bytes) else '{}' end;
end
$$;

-- Lets finished ones go until there are so many entries and bytes fewer, at most a hundred.
create or replace function let_go(of_refused boolean, over_entries bigint, over_bytes bigint) returns jsonb language plpgsql as $$
declare
  gone integer := 0;
  freed bigint := 0;
  wanted integer;
  head finished_deliveries;
  step record;
begin
  while gone < 100 and (gone < over_entries or freed < over_bytes) loop
    wanted := greatest(1, least(100, over_entries) - gone);
    select * into head from finished_deliveries where is_refused = of_refused order by place limit 1 for update skip locked;
    exit when not found;
    if cardinality(head.ordinals) <= wanted then
      delete from finished_deliveries where is_refused = of_refused and place = head.place;
    else
      update finished_deliveries set ordinals = head.ordinals[wanted + 1:] where is_refused = of_refused and place = head.place;
    end if;
    with erased as (
      delete from deliveries where ordinal = any (head.ordinals[1:wanted]) returning bytes
    )
    select count(*) as gone, coalesce(sum(bytes), 0) as freed into step from erased;
    gone := gone + step.gone;
    freed := freed + step.freed;
  end loop;
  if of_refused then
    return jsonb_build_object('deliveries', -gone, 'deliveryBytes', -freed, 'refused', -gone, 'refusedBytes', -freed);
  end if;
  return jsonb_build_object('deliveries', -gone, 'deliveryBytes', -freed);
end
$$;

-- Their work has ended: from now on they may be let go, in this order. To be called once for each.
create or replace function finish_deliveries(ids text[]) returns void language plpgsql as $$
begin
  if coalesce(cardinality(ids), 0) > 0 then
    insert into finished_deliveries (is_refused, ordinals)
    select false, array_agg(d.ordinal order by of.n) from unnest(ids) with ordinality as of (id, n) join deliveries d on d.delivery_id = of.id
    having count(*) > 0;
  end if;
end
$$;

-- Those that began no work. `ring` as above, `strangers` the same of refused ones.
create or replace function record_finished(deliveries json, ring json, strangers json, again boolean, in_lane text) returns json language plpgsql as $$
declare
  deltas jsonb;
  results json;
  refused_count integer;
  refused_bytes bigint;
  others integer;
  other_bytes bigint;
  none constant json := '{"size": 0, "bytes": 0, "entries": 1000000000, "most": 1000000000000000}';
begin
  results := (select json_agg(null::text) from json_array_elements(deliveries));
  if again then
    select json_agg(of) into deliveries from json_array_elements(deliveries) as of
    where not exists (select from deliveries d where d.delivery_id = of->>'id');
    if deliveries is null then
      return json_build_object('results', results);
    end if;
  end if;
  deltas := record_deliveries(deliveries, null, none);
  insert into finished_deliveries (is_refused, ordinals)
  select d.kept = 'refused', array_agg(d.ordinal order by d.ordinal)
  from json_to_recordset(deliveries) as of (id text) join deliveries d on d.delivery_id = of.id group by 1;
  select count(*), coalesce(sum(of.bytes), 0) into refused_count, refused_bytes
  from json_to_recordset(deliveries) as of (kept text, bytes integer) where of.kept = 'refused';
  deltas := merge_counts(deltas, jsonb_build_object('refused', refused_count, 'refusedBytes', refused_bytes));
  if refused_count > 0 then
    deltas := merge_counts(deltas, make_room(true, refused_count, refused_bytes, strangers));
  end if;
  others := json_array_length(deliveries) - refused_count;
  if others > 0 then
    select sum(of.bytes) - refused_bytes into other_bytes from json_to_recordset(deliveries) as of (bytes integer);
    deltas := merge_counts(deltas, make_room(false, others, other_bytes, ring));
  end if;
  perform add_counts(in_lane, deltas);
  return json_build_object('counts', deltas, 'results', results);
end
$$;

create or replace function note_step(in_id text, step text) returns jsonb language plpgsql as $$
declare
  kept_as text;
begin
  update deliveries set
    steps = case when steps is null then '[' || step || ']' else left(steps, -1) || ',' || step || ']' end,
    step_count = step_count + 1,
    bytes = bytes + length(step) + 1
  where delivery_id = in_id and step_count < 200
  returning kept into kept_as;
  return case
    when kept_as is null then '{}'
    when kept_as = 'refused' then jsonb_build_object('deliveryBytes', length(step) + 1, 'refusedBytes', length(step) + 1)
    else jsonb_build_object('deliveryBytes', length(step) + 1)
  end;
end
$$;

create or replace function add_delivery_step(in_id text, step text, in_lane text) returns json language plpgsql as $$
declare
  deltas jsonb := note_step(in_id, step);
begin
  perform add_counts(in_lane, deltas);
  return json_build_object('counts', deltas);
end
$$;

create or replace function bare_steps(steps text) returns text language sql immutable as $$
  select json_agg(json_build_object('at', step->'at', 'name', step->'name') order by n)::text
  from json_array_elements(steps::json) with ordinality as of (step, n)
$$;

create or replace function erasable_bytes(one deliveries) returns integer language sql immutable as $$
  select coalesce(length(one.body), 0) + coalesce(length(one.steps), 0) - coalesce(length(bare_steps(one.steps)), 0)
$$;

-- Answers by how many bytes it is smaller.
create or replace function erase_delivery(one deliveries) returns integer language sql as $$
  update deliveries set
    kept = case when kept = 'turn' then 'gone' else kept end, body = null, steps = bare_steps(one.steps), bytes = one.bytes - erasable_bytes(one)
  where ordinal = one.ordinal;
  select erasable_bytes(one)
$$;

-- Their session is deleted: bodies go, and what steps tell of them.
create or replace function erase_deliveries(in_session text) returns jsonb language sql as $$
  select jsonb_build_object('deliveryBytes', -coalesce(sum(erase_delivery(row(known.*)::deliveries)), 0))
  from (select * from deliveries where session_id = in_session order by ordinal for update) as known
$$;

-- The same of turns that age away, by their deliveries.
create or replace function erase_deliveries_of(ids text[]) returns jsonb language sql as $$
  select jsonb_build_object('deliveryBytes', -coalesce(sum(erase_delivery(row(known.*)::deliveries)), 0))
  from (select * from deliveries where delivery_id = any (ids) order by ordinal for update) as known
$$;


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

-- `ran`: { events, turnIds } or null; `wall`: the wall clock, for the time of the next.
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


create or replace function event_bytes(size integer) returns integer language sql immutable as $$
  select size + 350
$$;

create or replace function event_json(event events) returns json language sql stable as $$
  select row_to_json(known) from (select event.*, taken_by(event) as taken_by) as known
$$;

-- Orders of which none has a key and none is refused, as their node sees: `deltas` are what they add to the counters, `news` what they tell,
-- `asking` whose beat is to come at once. Answers their ordinals.
create or replace function keep_events(
  orders json, deliveries json, deltas jsonb, news text, asking text[], ring json, last_at bigint, keep integer, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  ordinals json;
  sooner json[];
  told json;
begin
  with added as (
    insert into events (ordinal, event_id, agent, text, metadata, size, caller, created_at, delivery_id, is_recorded)
    select nextval('event_ordinals'), of.id, of.agent, of.text, of.metadata, of.size, of.caller, of.now, of.delivery, of.delivery is not null
    from rows from (json_to_recordset(orders) as (
      id text, agent text, text text, metadata text, size integer, caller text, now bigint, delivery text
    )) with ordinality as of (id, agent, text, metadata, size, caller, now, delivery, n) order by of.n
    returning ordinal
  )
  select json_agg(ordinal order by ordinal) into ordinals from added;
  if deliveries is not null then
    deltas := deltas || record_deliveries(deliveries, null, ring);
  end if;
  if cardinality(asking) > 0 then
    sooner := ask_beats(asking, engine_time(at_ms));
  end if;
  told := append_gateway(json_array_length(ordinals), news, last_at, keep);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'results', ordinals, 'counts', deltas, 'first', told->'first', 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

-- Several orders, each kept or refused for itself. `known_view`: { open, bytes, keys } as the caller's node knows them; `again`: some of these
-- orders may have been kept by a call whose answer was lost.
-- Answers for each order its ordinal, the { event } that it repeats, or { refused, held }.
create or replace function queue_events(
  orders json, deliveries json, known_view json, ring json, again boolean, in_lane text, at_ms double precision
) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  open_now bigint := (known_view->>'open')::bigint;
  bytes_now bigint := (known_view->>'bytes')::bigint;
  bytes_before constant bigint := bytes_now;
  results json[] := '{}';
  repeats integer[] := '{}';
  repeated text[] := '{}';
  news json[] := '{}';
  asking text[] := '{}';
  accepted integer[] := '{}';
  ordinals bigint[] := '{}';
  agents text[] := '{}';
  keys jsonb := '{}';
  deltas jsonb;
  sooner json[];
  entries json;
  o record;
  known idempotency_keys;
  event events;
  place bigint;
  keep integer;
  last_at bigint;
  has_keys constant boolean := (known_view->>'keys')::boolean;
begin
  if has_keys then
    perform lock_keys(array(select of.key from json_to_recordset(orders) as of (key text) where of.key is not null));
  end if;
  for o in
    select of.* from rows from (json_to_recordset(orders) as (
      id text, agent text, size integer, now bigint, beat boolean, key text, hash text, expires bigint, events bigint, bytes bigint, keep integer
    )) with ordinality as of (id, agent, size, now, beat, key, hash, expires, events, bytes, keep, n) order by of.n
  loop
    if again then
      select * into event from events where event_id = o.id;
      if found then
        results := results || json_build_object('event', event_json(event), 'kept', true);
        continue;
      end if;
    end if;
    if o.key is not null then
      if keys ? o.key then
        results := results || json_build_object('refused', 'idempotency-mismatch');
        if keys->o.key->>'hash' = o.hash then
          repeats := repeats || cardinality(results);
          repeated := repeated || (keys->o.key->>'event');
        end if;
        continue;
      end if;
      known := find_key(o.key, o.now);
      if known.key is not null then
        if known.hash <> o.hash or known.event_id is null then
          results := results || json_build_object('refused', 'idempotency-mismatch');
        else
          select * into event from events where event_id = known.event_id;
          results := results || case
            when found then json_build_object('event', event_json(event)) else json_build_object('refused', 'event-not-found')
          end;
        end if;
        continue;
      end if;
    end if;
    if open_now >= o.events then
      results := results || json_build_object('refused', 'gateway-busy', 'held', open_now);
      continue;
    end if;
    if bytes_now >= o.bytes then
      results := results || json_build_object('refused', 'store-full', 'held', bytes_now);
      continue;
    end if;
    place := nextval('event_ordinals');
    if o.key is not null then
      bytes_now := bytes_now + keep_key(o.key, o.hash, o.expires, null, o.id);
      keys := keys || jsonb_build_object(o.key, jsonb_build_object('hash', o.hash, 'event', o.id));
    end if;
    accepted := accepted || cardinality(results);
    ordinals := ordinals || place;
    results := results || to_json(place);
    news := news || json_build_object('name', 'event.queued', 'eventId', o.id, 'agentName', o.agent);
    agents := agents || o.agent;
    open_now := open_now + 1;
    bytes_now := bytes_now + event_bytes(o.size);
    keep := o.keep;
    last_at := o.now;
    if o.beat and not o.agent = any (asking) then
      asking := asking || o.agent;
    end if;
  end loop;
  if cardinality(accepted) = 0 then
    return json_build_object('results', results);
  end if;
  insert into events (ordinal, event_id, agent, text, metadata, size, caller, created_at, delivery_id, is_recorded)
  select new.ordinal, of.id, of.agent, of.text, of.metadata, of.size, of.caller, of.now, of.delivery, of.delivery is not null
  from rows from (json_to_recordset(orders) as (
    id text, agent text, text text, metadata text, size integer, caller text, now bigint, delivery text
  )) with ordinality as of (id, agent, text, metadata, size, caller, now, delivery, n)
  join unnest(accepted, ordinals) as new (n, ordinal) on new.n = of.n - 1;
  for n in 1 .. cardinality(repeats) loop
    select * into event from events where event_id = repeated[n];
    results[repeats[n]] := json_build_object('event', event_json(event));
  end loop;
  select jsonb_object_agg('waiting ' || agent, n) into deltas
  from (select agent, count(*) as n from unnest(agents) as of (agent) group by agent) as of_agents;
  deltas := deltas || jsonb_build_object('events', cardinality(accepted), 'bytes', bytes_now - bytes_before);
  if deliveries is not null then
    deltas := deltas || record_deliveries(deliveries, accepted, ring);
  end if;
  if cardinality(asking) > 0 then
    sooner := ask_beats(asking, at_time);
  end if;
  entries := append_gateway(cardinality(news), array_to_json(news)::text, last_at, keep);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'results', results, 'counts', deltas, 'gateway', entries, 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

create or replace function requeue_event(in_id text, at_wall bigint, beat_now boolean, keep integer, in_lane text, at_ms double precision)
returns json language plpgsql as $$
declare
  event events;
  entry json;
  deltas jsonb;
  sooner json[];
  entries json;
begin
  select * into event from events where event_id = in_id for no key update;
  if not found then
    return null;
  end if;
  if event.state <> 'dead' then
    return json_build_object('event', event_json(event));
  end if;
  -- What was recorded of it was finished as it died.
  update events set state = 'queued', attempts = 0, ended_at = null, is_recorded = false, ordinal = nextval('event_ordinals')
  where event_id = in_id returning * into event;
  if beat_now then
    sooner := ask_beats(array[event.agent], engine_time(at_ms));
  end if;
  entry := json_build_object('name', 'event.queued', 'eventId', in_id, 'agentName', event.agent);
  entries := append_gateway(1, json_build_array(entry)::text, at_wall, keep);
  deltas := jsonb_build_object('events', 1, 'dead', -1, 'waiting ' || event.agent, 1);
  perform add_counts(in_lane, deltas);
  return json_build_object(
    'event', event_json(event), 'counts', deltas, 'gateway', entries, 'beats', sooner, 'beat', coalesce(cardinality(sooner), 0) > 0
  );
end
$$;

create or replace function sweep_events(before bigint, most integer, out gone integer, out deltas jsonb) language sql as $$
  with gone as (
    delete from events where event_id in (
      select event_id from events where ended_at < before order by ended_at limit most for update skip locked
    ) returning size, state
  )
  select count(*)::integer, jsonb_build_object(
    'bytes', -coalesce(sum(event_bytes(size)), 0), 'dead', -count(*) filter (where state = 'dead')
  ) from gone
$$;


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

-- `free`: by channel, how many it has room for. One claims at a time; what it has chosen is looked at again as it is taken.
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


create or replace function usage_bytes() returns integer language sql immutable as $$
  select 400
$$;

-- `rows`: [{ hour, agent, model, surface, caller, and what to add }]. Answers what it adds to the store's counters.
create or replace function add_usage(rows json, in_lane text) returns jsonb language plpgsql as $$
declare
  fresh integer;
begin
  with added as (
    insert into usage_counts (lane, hour, agent, model, surface, caller, messages,completed,failed,cancelled,attempts,latency_ms,input,output,cached,reasoning,cost)
    select in_lane, hour, agent, model, surface, caller, messages,completed,failed,cancelled,attempts,latency_ms,input,output,cached,reasoning,cost
    from (
      select hour, agent, model, surface, caller, coalesce(sum(messages), 0) as messages,coalesce(sum(completed), 0) as completed,coalesce(sum(failed), 0) as failed,coalesce(sum(cancelled), 0) as cancelled,coalesce(sum(attempts), 0) as attempts,coalesce(sum(latency), 0) as latency_ms,coalesce(sum(input), 0) as input,coalesce(sum(output), 0) as output,coalesce(sum((more->>0)::bigint), 0) as cached,coalesce(sum((more->>1)::bigint), 0) as reasoning,coalesce(sum((more->>2)::bigint), 0) as cost
      from json_to_recordset(rows) as of (
        hour bigint, agent text, model text, surface text, caller text, messages bigint, completed bigint, failed bigint, cancelled bigint,
        attempts bigint, latency double precision, input bigint, output bigint, more json
      )
      group by hour, agent, model, surface, caller
    ) as sums
    order by hour, agent, model, surface, caller
    on conflict (hour, agent, model, surface, caller, lane) do update set
      messages = usage_counts.messages + excluded.messages,
      completed = usage_counts.completed + excluded.completed,
      failed = usage_counts.failed + excluded.failed,
      cancelled = usage_counts.cancelled + excluded.cancelled,
      attempts = usage_counts.attempts + excluded.attempts,
      latency_ms = usage_counts.latency_ms + excluded.latency_ms,
      input = usage_counts.input + excluded.input,
      output = usage_counts.output + excluded.output,
      cached = usage_counts.cached + excluded.cached,
      reasoning = usage_counts.reasoning + excluded.reasoning,
      cost = usage_counts.cost + excluded.cost
    returning xmax = 0 as is_new
  )
  select count(*) filter (where is_new) into fresh from added;
  return case when fresh = 0 then '{}' else jsonb_build_object('bytes', fresh * usage_bytes()) end;
end
$$;

-- What of a use most have nothing of.
create or replace function more_of(used json) returns bigint[] language plpgsql immutable as $$
begin
  if used->'more' is null then
    return null;
  end if;
  return array[(used->'more'->>0)::bigint, (used->'more'->>1)::bigint, (used->'more'->>2)::bigint];
end
$$;

create or replace function add_more(one bigint[], other bigint[]) returns bigint[] language plpgsql immutable as $$
begin
  if one is null or other is null then
    return coalesce(one, other);
  end if;
  return array[one[1] + other[1], one[2] + other[2], one[3] + other[3]];
end
$$;

create or replace function count_usage(rows json, in_lane text) returns json language plpgsql as $$
declare
  deltas jsonb := add_usage(rows, in_lane);
begin
  perform add_counts(in_lane, deltas);
  return json_build_object('counts', deltas);
end
$$;

create or replace function sweep_usage(before bigint, current_hour bigint, out deltas jsonb) language plpgsql as $$
declare
  gone integer;
  folded integer;
begin
  delete from usage_counts where hour + 3600000 <= before;
  get diagnostics gone = row_count;
  with past as (
    delete from usage_counts where lane <> '' and hour < current_hour returning *
  ), folding as (
    insert into usage_counts (lane, hour, agent, model, surface, caller, messages,completed,failed,cancelled,attempts,latency_ms,input,output,cached,reasoning,cost)
    select '', hour, agent, model, surface, caller, sum(messages),sum(completed),sum(failed),sum(cancelled),sum(attempts),sum(latency_ms),sum(input),sum(output),sum(cached),sum(reasoning),sum(cost) from past group by hour, agent, model, surface, caller order by hour, agent, model, surface, caller
    on conflict (hour, agent, model, surface, caller, lane) do update set
      messages = usage_counts.messages + excluded.messages,
      completed = usage_counts.completed + excluded.completed,
      failed = usage_counts.failed + excluded.failed,
      cancelled = usage_counts.cancelled + excluded.cancelled,
      attempts = usage_counts.attempts + excluded.attempts,
      latency_ms = usage_counts.latency_ms + excluded.latency_ms,
      input = usage_counts.input + excluded.input,
      output = usage_counts.output + excluded.output,
      cached = usage_counts.cached + excluded.cached,
      reasoning = usage_counts.reasoning + excluded.reasoning,
      cost = usage_counts.cost + excluded.cost
    returning xmax = 0 as is_new
  )
  select gone + (select count(*) from past) - count(*) filter (where is_new) into gone from folding;
  deltas := jsonb_build_object('bytes', -gone * usage_bytes());
end
$$;


-- A new key; with `old_id` in the place of that one, which then ends at `old_ends` unless it ends sooner.
create or replace function keep_key(in_key json, old_id text, old_ends bigint) returns json language plpgsql as $$
begin
  if old_id is not null then
    update api_keys set replaced_by = in_key->>'keyId', expires_at = least(coalesce(expires_at, old_ends), old_ends)
    where key_id = old_id and replaced_by is null;
    if not found then
      return json_build_object('changed', false, 'keys', false);
    end if;
  end if;
  insert into api_keys (key_id, name, prefix, hash, scopes, created_at, last_used_at, expires_at)
  values (in_key->>'keyId', in_key->>'name', in_key->>'prefix', in_key->>'hash', in_key->'scopes', (in_key->>'createdAt')::bigint,
    (in_key->>'lastUsedAt')::bigint, (in_key->>'expiresAt')::bigint) on conflict do nothing;
  return json_build_object('changed', found, 'keys', found);
end
$$;

-- For gateways of the version before, whose keys have no end.
create or replace function create_key(
  in_id text, in_name text, in_prefix text, in_hash text, in_scopes json, in_created bigint, in_used bigint
) returns json language plpgsql as $$
begin
  insert into api_keys (key_id, name, prefix, hash, scopes, created_at, last_used_at)
  values (in_id, in_name, in_prefix, in_hash, in_scopes, in_created, in_used) on conflict do nothing;
  return json_build_object('changed', found, 'keys', found);
end
$$;

create or replace function revoke_key(in_id text) returns json language plpgsql as $$
begin
  delete from api_keys where key_id = in_id;
  return json_build_object('changed', found, 'keys', found);
end
$$;

create or replace function touch_key(in_id text, at_wall bigint) returns json language plpgsql as $$
begin
  update api_keys set last_used_at = at_wall where key_id = in_id and coalesce(last_used_at, 0) < at_wall;
  return json_build_object('keys', found);
end
$$;


-- `requests`: [{ key, most, window, times }], each key once. Answers for each { used, waits }: how many were counted before, and how long
-- the next has to wait when there is no room for all. Time counts in sixtieths of the window.
create or replace function count_requests(requests json, at_ms double precision) returns json language plpgsql as $$
declare
  at_time double precision := engine_time(at_ms);
  results json[] := '{}';
  one record;
  width double precision;
  slice bigint;
  used bigint;
  granted bigint;
  kept_slices bigint[];
  kept_counts integer[];
begin
  insert into rate_counts (key) select key from json_to_recordset(requests) as of (key text) order by 1 on conflict do nothing;
  perform from rate_counts where key in (select key from json_to_recordset(requests) as of (key text)) order by key for no key update;
  for one in
    select of.*, r.slices, r.counts, r.width_ms
    from rows from (json_to_recordset(requests) as (key text, most integer, window_ms double precision, times integer))
      with ordinality as of (key, most, window_ms, times, n)
    join rate_counts r on r.key = of.key order by of.n
  loop
    width := one.window_ms / 60;
    slice := floor(at_time / width);
    kept_slices := '{}';
    kept_counts := '{}';
    -- Of another window, as after a change of the limit, nothing is known.
    if one.width_ms = width then
      select coalesce(array_agg(of.slice order by of.slice), '{}'), coalesce(array_agg(of.counted order by of.slice), '{}')
      into kept_slices, kept_counts
      from unnest(one.slices, one.counts) as of (slice, counted) where (of.slice + 1) * width + one.window_ms > at_time;
    end if;
    select coalesce(sum(counted), 0) into used from unnest(kept_counts) as of (counted);
    granted := greatest(0, least(one.times, one.most - used));
    results := results || json_build_object(
      'used', used,
      'waits', case when granted < one.times then (
        select min((of.slice + 1) * width) + one.window_ms - at_time
        from unnest(kept_slices || slice, kept_counts || granted::integer) as of (slice, counted) where of.counted > 0
      ) end
    );
    if granted > 0 and kept_slices[cardinality(kept_slices)] = slice then
      kept_counts[cardinality(kept_counts)] := kept_counts[cardinality(kept_counts)] + granted;
    elsif granted > 0 then
      kept_slices := kept_slices || slice;
      kept_counts := kept_counts || granted::integer;
    end if;
    update rate_counts set slices = kept_slices, counts = kept_counts, width_ms = width, ends_at = at_time + one.window_ms + width
    where key = one.key;
  end loop;
  return json_build_object('results', results);
end
$$;

-- For each key { used, whole_in }: how many count now, and in how many ms none of them does. It counts as `count_requests` does.
create or replace function read_requests(keys text[], window_ms double precision, at_ms double precision) returns json
language sql stable as $$
  select json_build_object('uses', coalesce(json_agg(json_build_object(
    'used', coalesce(found.used, 0), 'whole_in', found.ends - at.time
  ) order by of.n), '[]'))
  from engine_time(at_ms) as at (time), unnest(keys) with ordinality as of (key, n)
  left join lateral (
    select sum(part.counted) as used, max((part.slice + 1) * r.width_ms) + window_ms as ends
    from rate_counts r, unnest(r.slices, r.counts) as part (slice, counted)
    where r.key = of.key and r.width_ms = window_ms / 60 and part.counted > 0
      and (part.slice + 1) * r.width_ms + window_ms > at.time
  ) as found on true
$$;

create or replace function put_texts(pieces json) returns json language sql as $$
  insert into reply_texts (session_id, seq, place, length, turn_id, message_id, text)
  select of.session, of.seq, of.place, of.length, of.turn, of.message, of.text
  from json_to_recordset(pieces) as of (session text, seq bigint, place integer, length integer, turn text, message text, text text)
  on conflict do nothing;
  select 'null'::json
$$;

create or replace function read_texts(places json) returns json language sql stable as $$
  select coalesce(json_agg(row_to_json(found) order by found.session_id, found.place), '[]')
  from json_to_recordset(places) as of (session text, seq bigint, place integer),
    lateral (select max(t.seq) as newest from reply_texts t where t.session_id = of.session) as newest,
    lateral (
      select t.session_id, t.seq, t.place, t.turn_id, t.message_id, t.text from reply_texts t
      where t.session_id = of.session and t.seq = newest.newest
        and t.seq >= of.seq and (t.seq > of.seq or t.place + t.length > of.place)
    ) as found
$$;

create or replace function drop_texts(replies json) returns json language sql as $$
  delete from reply_texts t using json_to_recordset(replies) as of (session text, seq bigint)
  where t.session_id = of.session and t.seq = of.seq;
  select 'null'::json
$$;

create or replace function sweep_shared(at_time double precision) returns void language sql as $$
  delete from rate_counts where ends_at < at_time;
  delete from reply_texts where at < clock_timestamp() - interval '1 hour'
$$;


-- Answers `left` of `most` that were not needed.
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

-- What belongs to all turns that one call has ended or given back. `more`: deltas and changes of the caller's own.
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


create or replace function usage_json(t turns, at_wall bigint, in_model text, counts json) returns json language plpgsql immutable as $$
begin
  return json_build_object(
    'hour', at_wall - at_wall % 3600000, 'agent', t.agent, 'model', in_model, 'surface', t.surface, 'caller', t.caller,
    counts->>0, 1, 'latency', counts->1, 'input', counts->2, 'output', counts->3, 'more', counts->4
  );
end
$$;

-- `used`: { model, input, output, more, latency, answered } of an attempt that reached a backend, or null.
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

-- Ends a queued or running turn; answers what `conclude` takes. `known`: its node knows what it ended with, and tells of it itself.
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

-- `ends`: turns to be ended, or with `delay` given back, each with its place `n`; answers for each whether its claim held, and of those
-- that are finished what their entries need beside that. `again`: some
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

-- `orders`: what startTurn takes, each with its place `n`; answers a result for each, in that order. `again`: some of them may be kept
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


-- `free_of`: by agent, how many it has room for; `replies`: ids for the replies; `first_lane`: whether one that is waited for goes first.
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

-- `done`: { summary, outside, through, except, before, after, freedBytes, size }, or null.
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


-- Erases a session whose row the caller holds: `ends` is for `conclude`, the rest for its arguments and its answer.
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

-- Sessions past their retention, of those behind `in_after`, and heads of journals: a slice. `next` is where the following one begins;
-- null behind the last that is old enough. `kept`: how many of them stay; `young`: when the first one that is too young was made.
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


create or replace function have_agents(in_node text, names text[], at_ms double precision) returns void language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
begin
  insert into gateways (node, agents, seen) values (in_node, names, at_time)
  on conflict (node) do update set agents = excluded.agents, seen = excluded.seen;
  delete from gateways where seen < at_time - 86400000;
end
$$;

create or replace function leave_gateways(in_node text, at_ms double precision) returns void language plpgsql as $$
begin
  update gateways set seen = least(seen, engine_time(at_ms) - 10000) where node = in_node;
end
$$;

create or replace function gone_agents(names text[], within_ms double precision, at_ms double precision) returns json language plpgsql as $$
declare
  since constant double precision := engine_time(at_ms) - within_ms;
begin
  return (
    select coalesce(json_agg(name), '[]') from unnest(names) as of (name)
    where not exists (select from gateways where seen > since and name = any (agents))
  );
end
$$;

-- Events that a turn works on are told of by their turn.
create or replace function open_agents() returns json language plpgsql as $$
begin
  return (
    with recursive waited_for as (
      (select agent from events where state = 'queued' order by agent limit 1)
      union all
      select (select e.agent from events e where e.state = 'queued' and e.agent > w.agent order by e.agent limit 1)
      from waited_for w where w.agent is not null
    )
    select coalesce(json_agg(agent), '[]')
    from (select agent from turns where ended_at is null union select agent from waited_for where agent is not null) as open
  );
end
$$;
