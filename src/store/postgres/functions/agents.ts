/** Which agents gateways have, and for which of them something waits. */
export const AGENT_FUNCTIONS = /* sql */ `
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
`;
