import {
  bytesOfString,
  free,
  type Json,
  object,
  otherIn,
  record,
  report,
  STRING,
  stringIn,
  value,
  whole,
  withoutEscapes,
} from "./json.ts";

export const EVENTS = /* sql */ `
insert into events (event_id, ordinal, agent, is_queued, ended_at, body)
select event_id, ordinal, agent, state = 'queued', ended_at, ${record("events", "event_id", {
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
})} from old_events;
${report("events", "events", "old_events")}`;

/** A body is stored as UTF-8 or in Base64, and becomes a text with a character for each byte. */
const BODY = `case left(body, 1) when 't' then to_json(convert_from(convert_to(substr(body, 2), 'UTF8'), 'LATIN1'))::text
  when 'b' then '"' || regexp_replace(encode(pg_temp.bytes(delivery_id, substr(body, 2)), 'hex'), '(..)', '\\\\u00\\1', 'g') || '"' end`;
const BODY_BYTES = `case left(body, 1) when 't' then octet_length(substr(body, 2)) when 'b' then octet_length(pg_temp.bytes(delivery_id, substr(body, 2))) else 0 end`;
const HEADERS = stringIn("record", "headers");
/** Each character of a header is a byte. */
const HEADER_BYTES = `coalesce(length(${withoutEscapes(HEADERS, "x")}) - 2, 0)`;
export const IS_REFUSED = "kept = 'refused'";
export const DELIVERIES = /* sql */ `
create temp table ended on commit drop as
select ordinal, row_number() over (order by is_refused, place, n) as n
from (select f.is_refused, f.place, of.ordinal, of.n from old_finished_deliveries f cross join unnest(f.ordinals) with ordinality as of (ordinal, n)) as f;

insert into contents (place, body)
select ordinal, ${record("deliveries", "delivery_id", { place: whole("ordinal"), headers: HEADERS, body: BODY })} from old_deliveries;
insert into deliveries (delivery_id, place, refused, ended_order, body)
select delivery_id, ordinal, ${IS_REFUSED}, ended, ${record("deliveries", "delivery_id", {
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
    showsWords: value("body is not null"),
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
})} from (select d.*, e.n as ended from old_deliveries d left join ended e on e.ordinal = d.ordinal) as d
where ${record("deliveries", "delivery_id", "record")} is not null;
${report("deliveries", "deliveries", "old_deliveries")}`;

/** The numbers of a shelf of the recorder, as the layouts count them. */
export function shelf(condition: string): Json {
  const steps = `(select coalesce(sum(${bytesOfString("detail[1]")}), 0) from regexp_matches(steps, '"detail":(${STRING})', 'g') as of (detail))`;
  const bytes = `500 + ${HEADER_BYTES} + ${BODY_BYTES} + ${bytesOfString(stringIn("record", "path"))}
    + 100 * step_count + ${steps}`;
  const all = `from old_deliveries where ${condition}`;
  const fields = object({
    size: "count(*)::text",
    bytes: `coalesce(sum(${bytes}), 0)::text`,
    ended: "count(*) filter (where ordinal in (select ordinal from ended))::text",
  });
  return `(select ${fields} ${all})`;
}
