/** Time, and what one gateway tells another. */
export const FRAME_FUNCTIONS = /* sql */ `
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
`;
