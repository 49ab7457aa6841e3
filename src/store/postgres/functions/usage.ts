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
    insert into usage_counts (
      lane, hour, agent, model, surface, caller, messages, completed, failed, cancelled, attempts, latency_ms, input, output
    )
    select in_lane, of.hour, of.agent, of.model, of.surface, of.caller,
      coalesce(sum(of.messages), 0), coalesce(sum(of.completed), 0), coalesce(sum(of.failed), 0), coalesce(sum(of.cancelled), 0),
      coalesce(sum(of.attempts), 0), coalesce(sum(of.latency), 0), coalesce(sum(of.input), 0), coalesce(sum(of.output), 0)
    from json_to_recordset(rows) as of (
      hour bigint, agent text, model text, surface text, caller text, messages bigint, completed bigint, failed bigint, cancelled bigint,
      attempts bigint, latency double precision, input bigint, output bigint
    )
    group by of.hour, of.agent, of.model, of.surface, of.caller
    order by of.hour, of.agent, of.model, of.surface, of.caller
    on conflict (hour, agent, model, surface, caller, lane) do update set
      messages = usage_counts.messages + excluded.messages,
      completed = usage_counts.completed + excluded.completed,
      failed = usage_counts.failed + excluded.failed,
      cancelled = usage_counts.cancelled + excluded.cancelled,
      attempts = usage_counts.attempts + excluded.attempts,
      latency_ms = usage_counts.latency_ms + excluded.latency_ms,
      input = usage_counts.input + excluded.input,
      output = usage_counts.output + excluded.output
    returning xmax = 0 as is_new
  )
  select count(*) filter (where is_new) into fresh from added;
  return case when fresh = 0 then '{}' else jsonb_build_object('bytes', fresh * usage_bytes()) end;
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
    insert into usage_counts
    select '', hour, agent, model, surface, caller, sum(messages), sum(completed), sum(failed), sum(cancelled), sum(attempts),
      sum(latency_ms), sum(input), sum(output)
    from past group by hour, agent, model, surface, caller order by hour, agent, model, surface, caller
    on conflict (hour, agent, model, surface, caller, lane) do update set
      messages = usage_counts.messages + excluded.messages,
      completed = usage_counts.completed + excluded.completed,
      failed = usage_counts.failed + excluded.failed,
      cancelled = usage_counts.cancelled + excluded.cancelled,
      attempts = usage_counts.attempts + excluded.attempts,
      latency_ms = usage_counts.latency_ms + excluded.latency_ms,
      input = usage_counts.input + excluded.input,
      output = usage_counts.output + excluded.output
    returning xmax = 0 as is_new
  )
  select gone + (select count(*) from past) - count(*) filter (where is_new) into gone from folding;
  deltas := jsonb_build_object('bytes', -gone * usage_bytes());
end
$$;
`;
