/** Two things that no statement says: the time by which leases go, and the count of a request. */
export const FUNCTION_TEXT = /* sql */ `
-- Leases and delays are by the database's clock, which all gateways share; a test brings its own.
create or replace function engine_time(at_ms double precision) returns double precision language sql volatile as $$
  select coalesce(at_ms, extract(epoch from clock_timestamp())::double precision * 1000)
$$;

-- Counts a request where there is room. Answers { used, waits }: how many were counted before, and how long the next has to wait when there
-- is none. Time counts in sixtieths of the window.
create or replace function count_request(in_key text, most integer, window_ms double precision, at_ms double precision)
returns json language plpgsql as $$
declare
  at_time constant double precision := engine_time(at_ms);
  width constant double precision := window_ms / 60;
  slice constant bigint := floor(at_time / width);
  known rate_counts;
  kept_slices bigint[] := '{}';
  kept_counts integer[] := '{}';
  used bigint;
begin
  insert into rate_counts (key) values (in_key) on conflict do nothing;
  select * into known from rate_counts where key = in_key for no key update;
  -- Of another window, as after a change of the limit, nothing is known.
  if known.width_ms = width then
    select coalesce(array_agg(of.slice order by of.slice), '{}'), coalesce(array_agg(of.counted order by of.slice), '{}')
    into kept_slices, kept_counts
    from unnest(known.slices, known.counts) as of (slice, counted) where (of.slice + 1) * width + window_ms > at_time;
  end if;
  used := (select coalesce(sum(counted), 0) from unnest(kept_counts) as of (counted));
  if used >= most then
    return json_build_object('used', used, 'waits', (
      select min((of.slice + 1) * width) + window_ms - at_time
      from unnest(kept_slices, kept_counts) as of (slice, counted) where of.counted > 0
    ));
  end if;
  if kept_slices[cardinality(kept_slices)] = slice then
    kept_counts[cardinality(kept_counts)] := kept_counts[cardinality(kept_counts)] + 1;
  else
    kept_slices := kept_slices || slice;
    kept_counts := kept_counts || 1;
  end if;
  update rate_counts set slices = kept_slices, counts = kept_counts, width_ms = width, ends_at = at_time + window_ms + width where key = in_key;
  return json_build_object('used', used);
end
$$;
`;
