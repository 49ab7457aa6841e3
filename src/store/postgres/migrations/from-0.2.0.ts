/**
 * The conversion of the schema of version 7, which is that of release 0.2.0 with previews. A record becomes JSON, composed as text: PostgreSQL refuses
 * to read JSON with texts that callers may send (U+0000 and lone surrogates), but stores it.
 */
import { RECORD_TABLES } from "./schema.ts";

/** An expression whose value is the text of a JSON value; null leaves the field out. */
type Json = string;

/** The tables of version 7 that are replaced. Their names get a prefix first, and so do the names of their indexes. */
const OLD_TABLES =
  "agent_ends announcements api_keys beats compactions counts deliveries entries erased_sessions event_batches events finished_deliveries gateway_entries gateway_place idempotency_keys late_attempts news sessions turns usage_counts".split(
    " ",
  );
const NEW_TABLES =
  "sessions summaries turns open_turns journal events deliveries contents idempotency_keys usage announcements beats agents agent_counts api_keys";

/** A plain text, a number with a fraction, a boolean, or an array of numbers. */
function value(column: string): Json {
  return `to_json(${column})::text`;
}
/** A text from callers, which may be encoded: then it is JSON after its first character. */
function free(column: string): Json {
  return `case when ascii(${column}) = 1 then substr(${column}, 2) else to_json(${column})::text end`;
}
function whole(column: string): Json {
  return `(${column})::text`;
}
function object(fields: { readonly [name: string]: Json }): Json {
  const parts = Object.entries(fields).map(([name, json]) => `'"${name}":' || (${json})`);
  return `'{' || concat_ws(',', ${parts.join(", ")}) || '}'`;
}
function when(condition: string, json: Json): Json {
  return `case when ${condition} then ${json} end`;
}
/** A JSON string with another text for each escape: an \`x\`, or \`half\` for a lone surrogate. */
function withoutEscapes(json: Json, half: string): string {
  const plain = `regexp_replace(${json}, '\\\\\\\\', 'x', 'g')`;
  const whole = `regexp_replace(${plain}, '\\\\u[dD][89a-fA-F]..', '${half}', 'g')`;
  return `regexp_replace(${whole}, '\\\\(u....|.)', 'x', 'g')`;
}
/** The bytes of a text in UTF-8, of which a lone surrogate has three. */
function bytesOf(column: string): string {
  return `coalesce(case when ascii(${column}) = 1 then ${bytesOfString(`substr(${column}, 2)`)} else octet_length(${column}) end, 0)`;
}
function bytesOfString(json: Json): string {
  return `coalesce(octet_length(${withoutEscapes(json, "xxx")}) - 2, 0)`;
}
/** The length of a text as JavaScript counts it. */
function lengthOf(column: string): string {
  const long = (text: string) => `length(regexp_replace(${text}, '[\\U00010000-\\U0010FFFF]', 'xx', 'g'))`;
  const decoded = withoutEscapes(`substr(${column}, 2)`, "x");
  return `case when ascii(${column}) = 1 then ${long(decoded)} - 2 else ${long(column)} end`;
}

function usage(input: string, output: string, more: Json): Json {
  return object({ input: `coalesce(${input}, 0)::text`, output: `coalesce(${output}, 0)::text`, more });
}
/** Cached tokens, reasoning tokens and the cost, from an array. */
function moreOf(array: string): Json {
  const fields = { cached: whole(`${array}[1]`), reasoning: whole(`${array}[2]`), cost: whole(`${array}[3]`) };
  return when(`${array} is not null`, object(fields));
}

/** The fields of a flat JSON object that is stored as text: a string, and another value. In a string, quotes have a backslash before them. */
const STRING = `"(?:[^"\\\\]|\\\\.)*"`;
function stringIn(column: string, name: string): Json {
  return `substring(${column} from '"${name}":(${STRING})')`;
}
function otherIn(column: string, name: string): Json {
  return `substring(${column} from '"${name}":(true|false|-?[0-9.eE+-]+)')`;
}
/** Raises a notice with the number of converted records, or an error if some are missing. */
const REPORT = /* sql */ `
create function pg_temp.report(what text, made bigint, expected bigint) returns void language plpgsql as $$
begin
  if made <> expected then
    raise exception '% of % % were converted', made, expected, what;
  end if;
  raise notice 'Converted %: %.', what, made;
end $$;
create function pg_temp.counted(source text) returns bigint language plpgsql as $$
declare n bigint;
begin
  execute 'select count(*) from ' || source into n;
  return n;
end $$;
`;

function report(what: string, made: string, expected: string): string {
  return `do $$ begin perform pg_temp.report('${what}', pg_temp.counted('${made.replaceAll("'", "''")}'), pg_temp.counted('${expected.replaceAll("'", "''")}')); end $$;\n`;
}

const RENAMED = /* sql */ `
select set_config(name, 'on', true) from pg_settings where name in ('enable_seqscan', 'enable_sort', 'enable_hashjoin', 'enable_mergejoin');
drop view if exists live_turns;
do $$ declare of record; begin
  for of in select c.relname as name, c.relkind as kind from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
    and c.relname = any ('{${OLD_TABLES.join(",")}}')
  union all select i.relname, i.relkind from pg_class c join pg_index x on x.indrelid = c.oid join pg_class i on i.oid = x.indexrelid
    where c.relnamespace = current_schema()::regnamespace and c.relname = any ('{${OLD_TABLES.join(",")}}')
  loop
    execute format('alter %s %I rename to %I', case of.kind when 'r' then 'table' else 'index' end, of.name, 'old_' || of.name);
  end loop;
end $$;
`;

/** The greatest number that was given for an order or a place. New ones are greater. */
const BASE = /* sql */ `
create temp table base on commit drop as select greatest(
  (select (last_value + 1) * 1024 from ready_orders),
  (select coalesce(max(ordinal), 0) from old_deliveries),
  (select coalesce(max(ordinal), 0) from old_announcements),
  (select coalesce(max(ordinal), 0) from old_api_keys),
  (select coalesce(max(last_seq), 0) from old_sessions)) as n, round(extract(epoch from clock_timestamp()) * 1000)::bigint as now;
`;

const SESSIONS = /* sql */ `
insert into sessions (session_id, ordinal, agent, used, head, body)
select session_id, ordinal, agent, updated_at, head_due, (${object({
  session: object({
    sessionId: free("session_id"),
    agent: value("agent"),
    channel: free("channel"),
    userId: free("user_id"),
    createdAt: whole("created_at"),
    updatedAt: whole("updated_at"),
    lastSeq: whole("last_seq"),
    firstSeq: whole("first_seq"),
    messageCount: whole("message_count"),
    turnsQueued: whole("turns_queued"),
    usage: usage("input", "output", moreOf("more")),
    ordinal: whole("ordinal"),
    contextBytes: whole("context_bytes"),
    preview: free("preview"),
  }),
  compactedCount: whole("compacted_count"),
  headDueAt: whole("head_due"),
})})::json from old_sessions;
${report("sessions", "sessions", "old_sessions")}
insert into summaries (session, body)
select ordinal, (${object({
  ordinal: whole("ordinal"),
  summary: object({ text: free("summary"), outside: "case when summary_outside then 'true' else 'false' end" }),
  through: whole("summary_through"),
  except: value("summary_except"),
})})::json from old_sessions where summary is not null;
`;

/** The ids of the skills, of which each may be encoded. */
const SKILLS = `case skill_ids::text when '[]' then '[]' else '[' || (select string_agg(${free("id")}, ',' order by n)
  from json_array_elements_text(skill_ids) with ordinality as of (id, n)) || ']' end`;
const TURN = object({
  turnId: value("turn_id"),
  sessionId: free("session_id"),
  agent: value("agent"),
  surface: value("surface"),
  caller: free("caller"),
  status: value("status"),
  attempt: whole("attempt"),
  createdAt: whole("created_at"),
  startedAt: whole("started_at"),
  endedAt: whole("ended_at"),
  model: free("model"),
  skillIds: SKILLS,
  messageId: value("message_id"),
  seq: whole("seq"),
  error: when("error is not null", object({ name: value("error"), detail: free("detail") })),
  usage: when("input is not null", usage("input", "output", moreOf("more"))),
  deliveryId: free("delivery_id"),
  preview: free("preview"),
  replyPreview: free("reply_preview"),
  announcement: "announcement",
});
const OF_TURN = { turn: TURN, ordinal: whole("session"), place: whole("seq"), replySeq: "coalesce(reply_at, 0)::text" };

/** Open turns. A queued turn without an earlier one in its session is ready: a compaction, which is dropped, may have blocked it. */
const TURNS = /* sql */ `
create temp table batches on commit drop as
select b.turn_id, b.agent, b.most_attempts, b.stream_keep, b.ordinals,
  (select json_agg(e.event_id order by e.ordinal)::text from old_events e where e.ordinal = any (b.ordinals)) as ids
from old_event_batches b join old_turns t on t.turn_id = b.turn_id where t.ended_at is null;

insert into turns (turn_id, body) select turn_id, (${object(OF_TURN)})::json from old_turns where ended_at is not null;
${report("ended turns", "turns", "old_turns where ended_at is not null")}
insert into open_turns (id, session, agent, place, waited, other, compact, ready, due, lease_ends, body)
select turn_id, session, agent, seq, waited, not waited, false, ready, due, case when status = 'running' then lease_ends end, (${object(
  {
    ...OF_TURN,
    open: object({
      waited: value("waited"),
      countedModel: free("counted_model"),
      task: when(
        "ids is not null",
        object({ kind: `'"beat"'`, ids: "ids", maxAttempts: whole("most_attempts"), streamKeep: whole("stream_keep") }),
      ),
      announce: when("hops is not null", object({ channel: free("channel"), hops: whole("hops") })),
      replyMessageId: value("coalesce(reply_message_id, '')"),
      spentMs: value("spent_ms"),
      isCancelled: value("is_cancelled"),
      readyOrder: whole("ready"),
      dueAt: value("due"),
      lease: when("status = 'running'", object({ node: value("node"), endsAt: value("lease_ends") })),
    }),
  },
)})::json
from (select t.*, b.ids, b.most_attempts, b.stream_keep,
    case when t.ready_at <= base.now then t.ready_order
      when t.ready_at is null and t.status = 'queued'
        and not exists (select from old_turns o where o.session = t.session and o.ended_at is null and o.seq < t.seq)
      then base.n + row_number() over (order by t.turn_id) end as ready,
    case when t.ready_order is null or t.ready_at > base.now then t.ready_at end as due
  from old_turns t cross join base left join batches b on b.turn_id = t.turn_id where t.ended_at is null) as t;
${report("open turns", "open_turns", "old_turns where ended_at is null")}`;

const ENDS = "('turn.completed', 'turn.failed', 'turn.cancelled')";
/** The columns of the entry after a message, with the prefix \`n_\`. */
const NEXT = ["seq", "at", "turn_id", "name", "message_id", "input", "output", "used"];

function entry(of: string, fields: { readonly [name: string]: Json }): Json {
  const used = `${of}used -> 0`;
  const more = { cached: `${used} ->> 0`, reasoning: `${used} ->> 1`, cost: `${used} ->> 2` };
  const withMore = when(`json_typeof(${used}) = 'array'`, object(more));
  return object({
    name: value(`${of}name`),
    seq: whole(`${of}seq`),
    at: whole(`${of}at`),
    turnId: value(`${of}turn_id`),
    ...fields,
    usage: when(`${of}name in ${ENDS}`, usage(`${of}input`, `${of}output`, withMore)),
    model: free(`(${of}used ->> 1)`),
  });
}

const ENTRY = entry("", {
  messageId: when("name like 'message.%'", value("message_id")),
  role: when("name = 'message.created'", value("coalesce(role, 'user')")),
  text: when("name like 'message.%'", free("coalesce(text, '')")),
  outside: when("name = 'message.created'", value("coalesce(outside, false)")),
  context: when("name = 'message.created'", free("context")),
  attempt: whole("attempt"),
  reply: when("name in ('turn.completed', 'turn.cancelled') and message_id is null", free("coalesce(text, '')")),
  error: when("name = 'turn.failed'", object({ name: value("coalesce(error, 'internal')"), detail: free("detail") })),
  before: whole("sizes -> 0"),
  after: whole("sizes -> 1"),
});

/** An entry becomes a row. The end of a turn shares the row of the message before it, if that is its reply. Tool calls are stored as JSON. */
const JOURNAL = /* sql */ `
insert into journal (session, first_seq, at, body, calls)
select session, seq, case when is_pair then n_at else at end,
  ('[' || concat_ws(',', ${ENTRY}, ${when("is_pair", entry("n_", {}))}) || ']')::json,
  case when name = 'message.completed' and context is not null then ('{"' || seq || '":' || context || '}')::json end
from (select *, coalesce(name = 'message.completed' and n_seq = seq + 1 and n_name in ('turn.completed', 'turn.cancelled') and n_message_id is not null,
      false) as is_pair,
    coalesce(p_name = 'message.completed' and p_seq = seq - 1 and name in ('turn.completed', 'turn.cancelled') and message_id is not null, false) as is_second
  from (select *, lag(name) over w as p_name, lag(seq) over w as p_seq, ${NEXT.map((name) => `lead(${name}) over w as n_${name}`).join(", ")}
    from old_entries window w as (partition by session order by seq)) as e) as e
where not is_second;
${report(
  "rows of journals",
  "journal",
  `old_entries e where not (name in ('turn.completed', 'turn.cancelled') and message_id is not null
    and exists (select from old_entries p where p.session = e.session and p.seq = e.seq - 1 and p.name = 'message.completed'))`,
)}`;

/** Entries of the gateway's stream: an object with at most one level of objects in it. */
const NEWS = `\\{(?:[^"{}]|${STRING}|\\{(?:[^"{}]|${STRING})*\\})*\\}`;
/** The reason of an event's death is encoded in a JSON string, which can always be read. */
const REASON = `(${stringIn("one.news[1]", "reason")})::json #>> '{}'`;
const DEAD = object({
  name: `'"event.dead"'`,
  eventId: stringIn("one.news[1]", "eventId"),
  agentName: stringIn("one.news[1]", "agentName"),
  attempts: otherIn("one.news[1]", "attempts"),
  reason: free(`(${REASON})`),
});
const GATEWAY = /* sql */ `
insert into journal (session, first_seq, at, body)
select 0, g.first, g.at, ('[' || (select string_agg('{"seq":' || g.first + n - 1 || ',"at":' || g.at || ',' || substr(
    case when one.news[1] like '{"name":"event.dead"%' then ${DEAD} else one.news[1] end, 2), ',' order by n)
  from regexp_matches(g.news, '(${NEWS})', 'g') with ordinality as one (news, n)) || ']')::json
from old_gateway_entries g;
${report("rows of the gateway's stream", "journal where session = 0", "old_gateway_entries").replace("gateway's", "gateway''s")}`;

const EVENTS = /* sql */ `
insert into events (event_id, ordinal, agent, is_queued, ended_at, body)
select event_id, ordinal, agent, state = 'queued', ended_at, (${object({
  eventId: value("event_id"),
  agent: value("agent"),
  text: free("text"),
  metadata: free("metadata"),
  caller: free("caller"),
  status: value("state"),
  attempts: whole("attempts"),
  createdAt: whole("created_at"),
  endedAt: whole("ended_at"),
  turnId: value("turn_id"),
  reason: free("reason"),
  deliveryId: free("delivery_id"),
  ordinal: whole("ordinal"),
})})::json from old_events;
${report("events", "events", "old_events")}`;

/** A body is stored as UTF-8 or in Base64, and becomes a text with a character for each byte. */
const BODY = `case left(body, 1) when 't' then to_json(convert_from(convert_to(substr(body, 2), 'UTF8'), 'LATIN1'))::text
  when 'b' then '"' || regexp_replace(encode(decode(substr(body, 2), 'base64'), 'hex'), '(..)', '\\\\u00\\1', 'g') || '"' end`;
const BODY_BYTES = `case left(body, 1) when 't' then octet_length(substr(body, 2)) when 'b' then octet_length(decode(substr(body, 2), 'base64')) else 0 end`;
const HEADERS = stringIn("record", "headers");
/** Each character of a header is a byte. */
const HEADER_BYTES = `coalesce(length(${withoutEscapes(HEADERS, "x")}) - 2, 0)`;
const REFUSAL = `substring(record from '"refusal":(\\{(?:[^"{}]|${STRING})*\\})')`;
const IS_OF_STRANGER = `kept = 'refused' and ${otherIn("record", "isOfCaller")} is null`;
const DELIVERIES = /* sql */ `
create temp table ended on commit drop as
select ordinal, row_number() over (order by is_refused, place, n) as n
from (select f.is_refused, f.place, of.ordinal, of.n from old_finished_deliveries f cross join unnest(f.ordinals) with ordinality as of (ordinal, n)) as f;

insert into contents (place, body)
select ordinal, (${object({ place: whole("ordinal"), headers: HEADERS, body: BODY })})::json from old_deliveries;
insert into deliveries (delivery_id, place, refused, ended_order, body)
select delivery_id, ordinal, ${IS_OF_STRANGER}, ended, (${object({
  delivery: object({
    deliveryId: free("delivery_id"),
    at: whole("at"),
    surface: value("surface"),
    operation: stringIn("record", "operation"),
    method: stringIn("record", "method"),
    path: stringIn("record", "path"),
    address: stringIn("record", "address"),
    requestId: free("request_id"),
    caller: stringIn("record", "caller"),
    showsWords: `coalesce(${otherIn("record", "showsWords")}, ${value("body is not null")})`,
    bytes: otherIn("record", "bytes"),
    answer: value("case when kept in ('repeated', 'unmatched', 'refused', 'challenge') then kept else 'accepted' end"),
    status: otherIn("record", "status"),
    mapping: free("mapping"),
    replayOf: stringIn("record", "replayOf"),
    senderId: free("sender_id"),
    steps: "coalesce(steps, '[]')",
  }),
  contentBytes: whole(`${HEADER_BYTES} + ${BODY_BYTES}`),
  place: whole("ordinal"),
  turnId: value("turn_id"),
  eventId: value("event_id"),
  sessionId: free("session_id"),
  messageId: stringIn("record", "messageId"),
  agent: stringIn("record", "agent"),
  endedOrder: whole("ended"),
  isOfCaller: otherIn("record", "isOfCaller"),
  refusal: REFUSAL,
})})::json from (select d.*, e.n as ended from old_deliveries d left join ended e on e.ordinal = d.ordinal) as d;
${report("deliveries", "deliveries", "old_deliveries")}`;

const NAMES = `'[' || concat_ws(',', ${value("agent")}, ${free("model")}, ${value("surface")}, ${free("caller")}) || ']'`;
const COUNTED = "messages completed failed cancelled attempts input output cached reasoning cost".split(" ");
const SMALL_TABLES = /* sql */ `
insert into idempotency_keys (key, expires_at, body)
select key, expires_at, (${object({
  key: value("key"),
  hash: value("hash"),
  expiresAt: whole("expires_at"),
  turnId: value("turn_id"),
  eventId: value("event_id"),
})})::json from old_idempotency_keys;
${report("idempotency keys", "idempotency_keys", "old_idempotency_keys")}
insert into usage (counter, body)
select lpad(hour::text, 13, '0') || ' ' || case when ${lengthOf("names")} <= 250 then names
    else rtrim(translate(encode(sha256(convert_to(names, 'UTF8')), 'base64'), '+/', '-_'), '=') end, (${object({
      hour: whole("hour"),
      agent: value("agent"),
      model: free("model"),
      surface: value("surface"),
      caller: free("caller"),
      ...Object.fromEntries(COUNTED.map((name) => [name, whole(name)])),
      latencyMs: value("latency_ms"),
    })})::json
from (select hour, agent, model, surface, caller, ${NAMES} as names, sum(latency_ms) as latency_ms,
    ${COUNTED.map((name) => `sum(${name}) as ${name}`).join(", ")}
  from old_usage_counts group by hour, agent, model, surface, caller) as u;
${report("counters of usage", "usage", "(select distinct hour, agent, model, surface, caller from old_usage_counts) as u")}
insert into announcements (id, session, channel, place, ready, due, lease_ends, body)
select turn_id, session_ordinal, channel, ordinal, not is_claimed and later is null, later, case when is_claimed then lease_ends end, (${object(
  {
    announcement: object({
      turnId: value("turn_id"),
      sessionId: free("session_id"),
      agent: value("agent"),
      channel: free("channel"),
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
  },
)})::json
from (select a.*, case when not is_claimed and due > base.now then due end as later from old_announcements a cross join base) as a;
${report("announcements", "announcements", "old_announcements")}
insert into api_keys (id, place, body)
select key_id, ordinal, (${object({
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
})})::json from old_api_keys;
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

/** A beat with an open turn continues after it. Its turn holds the events of the beat's range. Another running beat becomes due. */
const AGENTS = /* sql */ `
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
    returned: "'0'",
    turnIds: "json_agg(turn_id order by turn_id)::text",
    openTurnId: value("max(turn_id)"),
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
  union all select agent, 0, 0, -sum(cardinality(ordinals)), 0, 0 from batches group by agent
  union all select agent, 0, 0, count(*) filter (where state = 'queued'), count(*) filter (where state = 'queued'), count(*) filter (where state = 'dead')
    from old_events where state <> 'handled' group by agent) as of group by agent;
insert into agent_counts (id, body) select agent, (${object({ agent: value("agent"), ...countsWith("") })})::json from counted;
${report("agents", "agents", "agents")}`;

/** The counts of an agent, or the sums of all. */
function countsWith(sum: string): { [name: string]: Json } {
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

/** The weights of records, as the layouts count them. */
const WEIGHTS = [
  `select 800 + ${lengthOf("session_id")} + ${lengthOf("channel")} + ${lengthOf("user_id")} + ${bytesOf("preview")} from old_sessions`,
  `select 200 + ${bytesOf("summary")} + 8 * cardinality(summary_except) from old_sessions where summary is not null`,
  `select 640 + ${bytesOf("detail")} + ${bytesOf("preview")} + ${bytesOf("reply_preview")} + case when ended_at is null then 200 else 0 end
    + case when announcement is null then 0 else 60 + ${bytesOfString(stringIn("announcement", "reason"))} end from old_turns`,
  `select 110 + case when name like 'message.%' then ${bytesOf("text")} + ${bytesOf("context")} else 0 end from old_entries`,
  `select 400 + ${bytesOf("text")} + ${bytesOf("metadata")} + ${bytesOf("reason")} from old_events`,
  "select 200 + octet_length(key) + octet_length(hash) from old_idempotency_keys",
  "select 400 from usage",
  "select 500 from announcements",
];
function shelf(condition: string): Json {
  const steps = `(select coalesce(sum(${bytesOfString("detail[1]")}), 0) from regexp_matches(steps, '"detail":(${STRING})', 'g') as of (detail))`;
  const bytes = `500 + ${HEADER_BYTES} + ${BODY_BYTES} + ${bytesOfString(stringIn("record", "path"))}
    + ${bytesOfString(stringIn("record", "detail"))} + 100 * step_count + ${steps}`;
  const all = `from old_deliveries where ${condition}`;
  const fields = object({
    size: "count(*)::text",
    bytes: `coalesce(sum(${bytes}), 0)::text`,
    ended: "count(*) filter (where ordinal in (select ordinal from ended))::text",
  });
  return `(select ${fields} ${all})`;
}
const STATE = /* sql */ `
update gateway_state set body = (${object({
  version: "'1'",
  numbers: object({
    session: "(select last_value from sessions_ordinal_seq)::text",
    event: "(select case when is_called then last_value else 0 end from event_ordinals)::text",
    place: "(select n from base)::text",
    order: "(select n + (select count(*) from open_turns) from base)::text",
  }),
  sessions: "(select count(*) from sessions)::text",
  bytes: `(select coalesce(sum(bytes), 0) from (${WEIGHTS.join(" union all ")}) as of (bytes))::text`,
  shelves: object({ refused: shelf(IS_OF_STRANGER), others: shelf(`not (${IS_OF_STRANGER})`) }),
  open: `(select ${object(countsWith("sum"))} from counted)`,
  announcements: "(select count(*) from announcements)::text",
  gateway: `(select ${object({ first: whole("first"), last: whole("last") })} from old_gateway_place)`,
})})::json;
`;

const DROPPED = /* sql */ `
drop table if exists ${OLD_TABLES.map((name) => `old_${name}`).join(", ")};
drop sequence if exists event_ordinals, announcement_ordinals, ready_orders, news_ids;
drop function pg_temp.report, pg_temp.counted;
analyze ${NEW_TABLES.replaceAll(" ", ", ")};
`;

/** All statements, in one transaction. A gateway of version 0.2.0 that still runs fails with each write, because its counters are gone. */
export const CONVERSION = [
  REPORT,
  RENAMED,
  RECORD_TABLES,
  BASE,
  SESSIONS,
  TURNS,
  JOURNAL,
  GATEWAY,
  EVENTS,
  DELIVERIES,
  SMALL_TABLES,
  AGENTS,
  STATE,
  DROPPED,
].join("");
