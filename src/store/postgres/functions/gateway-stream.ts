/** The gateway's stream: one counter gives the places, so that they grow by one in the order of the commits. */
export const GATEWAY_FUNCTIONS = /* sql */ `
-- \`news\`: so many as a JSON array. Answers it with its place. Near the end of a transaction: the counter is held until that ends.
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
`;
