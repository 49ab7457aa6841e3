/** Replaces the lease of a running beat with its turn. A running beat without a turn becomes due. */
export const BEATS_AS_TURNS = /* sql */ `
alter table beats add column run json;
update beats b set run = (
  select json_build_object(
    'began', extract(epoch from clock_timestamp()) * 1000,
    'through', (select case when is_called then last_value else 0 end from event_ordinals),
    'after', (select max(ordinal) from unnest(e.ordinals) as ordinal),
    'events', cardinality(e.ordinals),
    'returned', 0,
    'turnIds', json_build_array(t.turn_id),
    'openTurnId', t.turn_id,
    'dead', json_build_array(),
    'isLast', false)
  from turns t join event_batches e on e.turn_id = t.turn_id
  where t.agent = b.agent and t.ended_at is null
  order by t.turn_id desc limit 1)
where is_running;
update beats set due = 0, noted = extract(epoch from clock_timestamp()) * 1000 where is_running and run is null;
alter table beats drop column is_running, drop column node, drop column fence, drop column lease_ends;
`;

/**
 * A compaction is a turn in its session's queue, which is in the order of its places. Waiting ones are dropped, because no caller waits for them; turns that
 * waited behind one become ready.
 */
export const COMPACTIONS_AS_TURNS = /* sql */ `
alter table turns add column task json, add column place bigint, add column lane text;
update turns set place = seq, lane = case when waited then 'waited' else 'other' end where ended_at is null;
select setval('ready_orders', greatest(nextval('ready_orders'), (select coalesce(max(last_seq), 0) / 1024 + 1 from sessions)));
update sessions s set open = open - n
  from (select session, count(*) as n from compactions group by session) as c where c.session = s.ordinal;
drop table compactions;
update turns t set ready_at = 0, ready_order = nextval('ready_orders') * 1024
  where t.ended_at is null and t.status = 'queued' and t.ready_at is null
    and not exists (select from turns o where o.session = t.session and o.ended_at is null and o.place < t.place);
drop index turns_ready;
create index turns_ready on turns (agent, lane, ready_at, ready_order) where ready_at is not null;
`;
