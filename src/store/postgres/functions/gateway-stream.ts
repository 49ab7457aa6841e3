/** The gateway's stream: one counter gives the places, so that they grow by one in the order of the commits. */
export const GATEWAY_FUNCTIONS = /* sql */ `
-- Answers them as entries, with seq and time. Near the end of a transaction: the counter is held until that ends.
create or replace function append_gateway(news json[], at_wall bigint, keep integer) returns json language plpgsql as $$
declare
  added constant integer := coalesce(cardinality(news), 0);
  first_before bigint;
  first_now bigint;
  before bigint;
  entries text[] := '{}';
begin
  if added = 0 then
    return null;
  end if;
  select first, last into first_before, before from gateway_place for no key update;
  first_now := greatest(first_before, before + added - keep + 1);
  update gateway_place set first = first_now, last = before + added;
  insert into gateway_entries (seq, at, news)
  select before + of.n, at_wall, of.entry from unnest(news) with ordinality as of (entry, n);
  for n in 1 .. added loop
    -- Written here: to call a function for it took a fifth of what keeping an event takes.
    entries := entries || ('{"seq":' || before + n || ',"at":' || at_wall || ',' || substr(news[n]::text, 2));
  end loop;
  if first_now > first_before then
    delete from gateway_entries where seq >= first_before and seq < first_now;
  end if;
  return '[' || array_to_string(entries, ',') || ']';
end
$$;

create or replace function append_gateway_entry(news json, at_wall bigint, keep integer) returns json language sql as $$
  select json_build_object('gateway', append_gateway(array[news], at_wall, keep))
$$;

-- One statement, and so one moment.
create or replace function read_gateway(after bigint, most integer) returns json language plpgsql as $$
declare
  answer json;
begin
  select json_build_object('first', first, 'last', last, 'entries', ('[' || coalesce((
    select string_agg('{"seq":' || seq || ',"at":' || at || ',' || substr(news::text, 2), ',' order by seq)
    from (select * from gateway_entries where seq > after order by seq limit most) as page
  ), '') || ']')::json)
  into answer from gateway_place;
  return answer;
end
$$;

create or replace function sweep_gateway(before bigint) returns void language plpgsql as $$
declare
  oldest bigint;
begin
  if not exists (select from gateway_entries where seq = (select first from gateway_place) and at < before) then
    return;
  end if;
  perform from gateway_place for no key update;
  select min(seq) into oldest from gateway_entries where at >= before;
  update gateway_place set first = coalesce(oldest, last + 1);
  delete from gateway_entries where seq < (select first from gateway_place);
end
$$;
`;
