import { free, moreOf, object, record, report, usage, value, when, whole } from "./json.ts";

export const SESSIONS = /* sql */ `
insert into sessions (session_id, ordinal, agent, is_webhook, idle_at, idle_minute, body)
select session_id, ordinal, agent, session_id ~ '^(\\x01")?webhook:', least(updated_at, head_due), least(updated_at, head_due) / 60000,
  ${record("sessions", "session_id", {
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
    }),
    compactedCount: whole("compacted_count"),
    headDueAt: whole("head_due"),
  })} from old_sessions;
${report("sessions", "sessions", "old_sessions")}
insert into summaries (session, body)
select ordinal, ${record("sessions", "session_id", {
  ordinal: whole("ordinal"),
  summary: object({ text: free("summary"), outside: "case when summary_outside then 'true' else 'false' end" }),
  through: whole("summary_through"),
  except: value("summary_except"),
})} from old_sessions where summary is not null;
`;

/** The ids of the skills. Each id may be encoded. */
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
});
const OF_TURN = { turn: TURN, ordinal: whole("session"), place: whole("seq"), replySeq: "coalesce(reply_at, 0)::text" };

/** Open turns. A queued turn without an earlier turn in its session is ready, because compactions, which may have blocked it, are not converted. */
export const TURNS = /* sql */ `
create temp table batches on commit drop as
select b.turn_id, b.agent, b.most_attempts, b.stream_keep, b.ordinals,
  (select json_agg(e.event_id order by e.ordinal)::text from old_events e where e.ordinal = any (b.ordinals)) as ids
from old_event_batches b join old_turns t on t.turn_id = b.turn_id where t.ended_at is null;

insert into turns (turn_id, body) select turn_id, ${record("turns", "turn_id", OF_TURN)} from old_turns where ended_at is not null;
${report("ended turns", "turns", "old_turns where ended_at is not null")}
insert into open_turns (id, session, agent, place, waited, other, compact, ready, due, lease_ends, cancelled, body)
select turn_id, session, agent, seq, waited, not waited, false, ready, due, case when status = 'running' then lease_ends end, is_cancelled,
  ${record("turns", "turn_id", {
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
  })}
from (select t.*, b.ids, b.most_attempts, b.stream_keep,
    case when t.ready_at <= base.now then t.ready_order
      when t.ready_at is null and t.status = 'queued'
        and not exists (select from old_turns o where o.session = t.session and o.ended_at is null and o.seq < t.seq)
      then base.n + row_number() over (order by t.turn_id) end as ready,
    case when t.ready_order is null or t.ready_at > base.now then t.ready_at end as due
  from old_turns t cross join base left join batches b on b.turn_id = t.turn_id where t.ended_at is null) as t;
${report("open turns", "open_turns", "old_turns where ended_at is null")}`;
