import {
  free,
  type Json,
  object,
  otherIn,
  record,
  report,
  STRING,
  stringIn,
  usage,
  value,
  when,
  whole,
} from "./json.ts";

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

const OF_ENTRY = "session || '/' || seq";

/** The number of sessions, by their ordinals, whose journals are converted together. */
const SESSIONS_AT_ONCE = 10_000;

/**
 * An entry becomes a row. The end of a turn shares the row of the message before it, if that is its reply. Tool calls are stored as JSON. The journals take
 * the longest, so a notice reports their progress.
 */
export const JOURNAL = /* sql */ `
do $do$ declare
  newest bigint := (select coalesce(max(session), 0) from old_entries);
begin
  for done in 0..newest by ${SESSIONS_AT_ONCE} loop
    insert into journal (session, first_seq, at, body, calls)
    select session, seq, case when is_pair then n_at else at end,
      ${record("entries", OF_ENTRY, `'[' || concat_ws(',', ${ENTRY}, ${when("is_pair", entry("n_", {}))}) || ']'`)},
      case when name = 'message.completed' and context is not null
        then ${record("entries", OF_ENTRY, `'{"' || seq || '":' || context || '}'`)} end
    from (select *, coalesce(name = 'message.completed' and n_seq = seq + 1 and n_name in ('turn.completed', 'turn.cancelled')
          and n_message_id is not null, false) as is_pair,
        coalesce(p_name = 'message.completed' and p_seq = seq - 1 and name in ('turn.completed', 'turn.cancelled')
          and message_id is not null, false) as is_second
      from (select *, lag(name) over w as p_name, lag(seq) over w as p_seq, ${NEXT.map((name) => `lead(${name}) over w as n_${name}`).join(", ")}
        from old_entries where session > done and session <= done + ${SESSIONS_AT_ONCE}
        window w as (partition by session order by seq)) as e) as e
    where not is_second;
    if newest > ${SESSIONS_AT_ONCE} then
      raise notice 'Converted the journals of sessions up to % of %.', least(done + ${SESSIONS_AT_ONCE}, newest), newest;
    end if;
  end loop;
end $do$;
${report(
  "rows of journals",
  "journal",
  `old_entries e where not (name in ('turn.completed', 'turn.cancelled') and message_id is not null
    and exists (select from old_entries p where p.session = e.session and p.seq = e.seq - 1 and p.name = 'message.completed'))`,
)}`;

/** Entries of the gateway's stream: an object with at most one level of objects in it. */
const NEWS = `\\{(?:[^"{}]|${STRING}|\\{(?:[^"{}]|${STRING})*\\})*\\}`;
/** The reason of a dead event is encoded in a JSON string, which PostgreSQL can always read. */
const REASON = `(${stringIn("one.news[1]", "reason")})::json #>> '{}'`;
const DEAD = object({
  name: `'"event.dead"'`,
  eventId: stringIn("one.news[1]", "eventId"),
  agentName: stringIn("one.news[1]", "agentName"),
  attempts: otherIn("one.news[1]", "attempts"),
  reason: free(`(${REASON})`),
});
export const GATEWAY = /* sql */ `
insert into journal (session, first_seq, at, body)
select 0, g.first, g.at, ${record(
  "gateway_entries",
  "g.first",
  `'[' || (select string_agg('{"seq":' || g.first + n - 1 || ',"at":' || g.at || ',' || substr(
    case when one.news[1] like '{"name":"event.dead"%' then ${DEAD} else one.news[1] end, 2), ',' order by n)
  from regexp_matches(g.news, '(${NEWS})', 'g') with ordinality as one (news, n)) || ']'`,
)}
from old_gateway_entries g;
${report("rows of the gateway's stream", "journal where session = 0", "old_gateway_entries").replace("gateway's", "gateway''s")}`;
