const KEYS = ["hour", "agent", "model", "surface", "caller"].join(", ");
const COUNTS = [
  "messages",
  "completed",
  "failed",
  "cancelled",
  "attempts",
  "latency_ms",
  "input",
  "output",
  "cached",
  "reasoning",
  "cost",
];
/** Where what is to be added has another name than its counter. */
const ADDED: Readonly<Record<string, string>> = {
  latency_ms: "latency",
  cached: "(more->>0)::bigint",
  reasoning: "(more->>1)::bigint",
  cost: "(more->>2)::bigint",
};
/** What is there already grows by it. */
const ADDING = `on conflict (${KEYS}, lane) do update set
      ${COUNTS.map((name) => `${name} = usage_counts.${name} + excluded.${name}`).join(",\n      ")}
    returning xmax = 0 as is_new`;

/** Counters of usage: each lane adds to rows of its own, and what is past is added up by the sweep. */
export const USAGE_FUNCTIONS = /* sql */ `
create or replace function usage_bytes() returns integer language sql immutable as $$
  select 400
$$;

-- \`rows\`: [{ hour, agent, model, surface, caller, and what to add }]. Answers what it adds to the store's counters.
create or replace function add_usage(rows json, in_lane text) returns jsonb language plpgsql as $$
declare
  fresh integer;
begin
  with added as (
    insert into usage_counts (lane, ${KEYS}, ${COUNTS})
    select in_lane, ${KEYS}, ${COUNTS}
    from (
      select ${KEYS}, ${COUNTS.map((name) => `coalesce(sum(${ADDED[name] ?? name}), 0) as ${name}`)}
      from json_to_recordset(rows) as of (
        hour bigint, agent text, model text, surface text, caller text, messages bigint, completed bigint, failed bigint, cancelled bigint,
        attempts bigint, latency double precision, input bigint, output bigint, more json
      )
      group by ${KEYS}
    ) as sums
    order by ${KEYS}
    ${ADDING}
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
    insert into usage_counts (lane, ${KEYS}, ${COUNTS})
    select '', ${KEYS}, ${COUNTS.map((name) => `sum(${name})`)} from past group by ${KEYS} order by ${KEYS}
    ${ADDING}
  )
  select gone + (select count(*) from past) - count(*) filter (where is_new) into gone from folding;
  deltas := jsonb_build_object('bytes', -gone * usage_bytes());
end
$$;
`;
