/** What gateways on one database do together: rate limits, and replies as they are written. Nothing of it has to outlive the server. */
export const SHARED_FUNCTIONS = /* sql */ `
-- \`requests\`: [{ key, most, window, times }], each key once. Answers for each { used, waits }: how many were counted before, and how long
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

-- For each key { used, whole_in }: how many count now, and in how many ms none of them does. It counts as \`count_requests\` does.
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
`;
