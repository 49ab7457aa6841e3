import { free, type Json, lengthOf, object, record, report, value, when, whole } from "./json.ts";

const NAMES = `'[' || concat_ws(',', ${value("agent")}, ${free("model")}, ${value("surface")}, ${free("caller")}) || ']'`;
const COUNTED = "messages completed failed cancelled attempts input output cached reasoning cost".split(" ");
export const SMALL_TABLES = /* sql */ `
insert into idempotency_keys (key, expires_at, body)
select key, expires_at, ${record("idempotency_keys", "key", {
  key: value("key"),
  hash: value("hash"),
  expiresAt: whole("expires_at"),
  turnId: value("turn_id"),
  eventId: value("event_id"),
})} from old_idempotency_keys;
${report("idempotency keys", "idempotency_keys", "old_idempotency_keys")}
insert into usage (counter, body)
select lpad(hour::text, 13, '0') || ' ' || case when ${lengthOf("names")} <= 250 then names
    else rtrim(translate(encode(sha256(convert_to(names, 'UTF8')), 'base64'), '+/', '-_'), '=') end,
  ${record("usage_counts", "names", {
    hour: whole("hour"),
    agent: value("agent"),
    model: free("model"),
    surface: value("surface"),
    caller: free("caller"),
    ...Object.fromEntries(COUNTED.map((name) => [name, whole(name)])),
    latencyMs: value("latency_ms"),
  })}
from (select hour, agent, model, surface, caller, ${NAMES} as names, sum(latency_ms) as latency_ms,
    ${COUNTED.map((name) => `sum(${name}) as ${name}`).join(", ")}
  from old_usage_counts group by hour, agent, model, surface, caller) as u;
${report("counters of usage", "usage", "(select distinct hour, agent, model, surface, caller from old_usage_counts) as u")}
insert into outgoing (id, session, endpoint, place, ready, due, lease_ends, body)
select turn_id, session_ordinal, 'channel:' || channel, ordinal, not is_claimed and later is null, later, case when is_claimed then lease_ends end,
  ${record("announcements", "turn_id", {
    message: object({
      id: value("turn_id"),
      endpoint: value("'channel:' || channel"),
      sessionId: free("session_id"),
      agent: value("agent"),
      channel: value("channel"),
      hops: whole("hops"),
      deliveryId: free("delivery_id"),
      createdAt: whole("created_at"),
      attempts: whole("attempts"),
    }),
    ordinal: whole("session_ordinal"),
    place: whole("ordinal"),
    dueAt: value("later"),
    fence: whole("fence"),
    lease: when("is_claimed", object({ node: value("node"), endsAt: value("lease_ends") })),
  })}
from (select a.*, case when not is_claimed and due > base.now then due end as later from old_announcements a cross join base) as a;
${report("announcements", "outgoing", "old_announcements")}
insert into api_keys (id, place, body)
select key_id, ordinal, ${record("api_keys", "key_id", {
  key: object({
    keyId: value("key_id"),
    name: free("name"),
    prefix: value("prefix"),
    hash: value("hash"),
    scopes: "scopes::text",
    createdAt: whole("created_at"),
    lastUsedAt: whole("last_used_at"),
    expiresAt: whole("expires_at"),
    replacedBy: value("replaced_by"),
  }),
  place: whole("ordinal"),
})} from old_api_keys;
${report("API keys", "api_keys", "old_api_keys")}
insert into late_attempts (id, ends_at, body)
select turn_id || ' ' || attempt, until, (${object({
  turnId: value("turn_id"),
  fence: whole("attempt"),
  node: value("node"),
  agent: value("agent"),
  surface: value("surface"),
  caller: free("caller"),
  endsAt: value("until"),
})})::json from old_late_attempts;
insert into erasures (id, body) select session, (${object({ ordinal: whole("session") })})::json from old_erased_sessions;
${report("deleted sessions to erase", "erasures", "old_erased_sessions")}`;

/** True if an open turn works on the event `e`. */
const IS_TAKEN = "exists (select from batches x where x.agent = e.agent and e.ordinal = any (x.ordinals))";

/** A beat with an open turn continues after this turn, which has the events of the beat's range. A running beat without an open turn becomes due. */
export const AGENTS = /* sql */ `
insert into beats (id, body)
select agent, (${object({
  agent: value("agent"),
  dueAt: value("case when run is not null then null when is_running then 0 else due end"),
  nextAt: whole("round(case when is_running and run is null then now else noted end)::bigint"),
  isAsked: value("coalesce(is_asked, false)"),
  run: "run",
})})::json
from (select coalesce(b.agent, r.agent) as agent, b.due, b.noted, b.is_asked, coalesce(b.is_running, false) as is_running, r.run, base.now
  from old_beats b full join (select agent, ${object({
    began: "max(base.now)::text",
    through: "(select case when is_called then last_value else 0 end from event_ordinals)::text",
    after: "(select max(o) from batches x cross join unnest(x.ordinals) o where x.agent = b.agent)::text",
    before: "(select min(o) - 1 from batches x cross join unnest(x.ordinals) o where x.agent = b.agent)::text",
    events: "sum(cardinality(ordinals))::text",
    returned: `(select count(*) from old_events e where e.agent = b.agent and e.state = 'queued' and not ${IS_TAKEN}
      and e.ordinal < (select max(o) from batches x cross join unnest(x.ordinals) o where x.agent = b.agent))::text`,
    turnIds: "json_agg(turn_id order by turn_id)::text",
    openTurnId: value("min(turn_id)"),
    dead: "'[]'",
    isLast: "'false'",
  })} as run from batches b cross join base group by agent) as r on r.agent = b.agent cross join base) as b;

insert into agents (id, body)
select agent, (${object({
  agent: value("agent"),
  lastEndedAt: whole("ended_at"),
  failing: value("coalesce(failing, false)"),
  pausedAt: whole("paused_at"),
})})::json
from (select coalesce(e.agent, b.agent) as agent, e.ended_at, e.failing, b.paused_at
  from (select agent, max(ended_at) as ended_at, (array_agg(failing order by failing_at desc nulls last) filter (where failing is not null))[1] as failing
    from old_agent_ends group by agent) as e
  full join (select agent, paused_at from old_beats where paused_at is not null) as b on b.agent = e.agent) as a;

create temp table counted on commit drop as
select agent, sum(queued) as queued, sum(running) as running, sum(waiting) as waiting, sum(open) as open, sum(dead) as dead from (
  select agent, count(*) filter (where status = 'queued') as queued, count(*) filter (where status = 'running') as running,
    0 as waiting, 0 as open, 0 as dead from old_turns where ended_at is null group by agent
  union all select agent, 0, 0, count(*) filter (where state = 'queued' and not ${IS_TAKEN}), count(*) filter (where state = 'queued'), count(*) filter (where state = 'dead')
    from old_events e where state <> 'handled' group by agent) as of group by agent;
insert into agent_counts (id, body) select agent, (${object({ agent: value("agent"), ...countsWith("") })})::json from counted;
${report("agents", "agents", "agents")}`;

/** The counts of an agent, or the sums of all. */
export function countsWith(sum: string): { [name: string]: Json } {
  const of = (column: string) => `coalesce(${sum}(${column}), 0)::text`;
  return {
    queued: of("queued"),
    running: of("running"),
    compactions: "'0'",
    waitingEvents: of("waiting"),
    openEvents: of("open"),
    deadEvents: of("dead"),
  };
}
