/** The flight recorder: what came, and which of it may be let go, the oldest that has finished first. */
export const DELIVERY_FUNCTIONS = /* sql */ `
-- \`ring\`: { size, bytes, entries, most } of all but refused ones, as the caller's node knows it; \`accepted\`: those orders' deliveries, or all.
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

-- Those that began no work. \`ring\` as above, \`strangers\` the same of refused ones.
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
`;
