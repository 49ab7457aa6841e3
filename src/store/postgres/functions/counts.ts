/**
 * What a function in the language `sql` does is planned anew in each call of who calls it, and in `plpgsql` once for a connection: hence
 * nearly all is in that. Counters that nobody waits for: each kind of call of each node adds to rows of its own, its lane.
 */
export const COUNT_FUNCTIONS = /* sql */ `
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
`;
