import { encodeText } from "#store/postgres/texts.ts";
import type { ToolCall } from "#store/store.ts";

/** U+0000, a lone surrogate, a character of two units, quotes and a backslash. */
export const HOSTILE = 'a\0b\ud800c \u{1f600} "é" \\u0000 \n';
export const CALLS = [{ name: "look", arguments: HOSTILE, result: "42" }] as unknown as ToolCall[];
export const HARD_SESSION = 113;
export const BINARY = Buffer.from([0, 255, 10, 0, 128]);
export const DEAD = { name: "event.dead", eventId: "evt_dead", agentName: "main", attempts: 3 };
export const HEALTH = {
  name: "health.changed",
  nodeId: "node_1",
  status: "ok",
  parts: [{ name: "store", status: "ok", detail: HOSTILE }],
};

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
const STORED = quoted(encodeText(HOSTILE));

/** Further records of version 0.2.0: each text of a caller is one that PostgreSQL cannot store. */
export const HARD = `
insert into sessions (ordinal, session_id, agent, channel, user_id, created_at, updated_at, last_seq, more, summary, summary_outside, summary_through, summary_except)
overriding system value values (${HARD_SESSION}, ${STORED}, 'main', ${STORED}, ${STORED}, 1, 2, 6, '{1,2,3}', ${STORED}, true, 2, '{1}');
insert into entries (session, seq, at, turn_id, name, message_id, role, text, outside, context, attempt, input, output, error, detail, used) values
  (${HARD_SESSION}, 1, 1, 'turn_hard', 'message.created', 'msg_1', 'system', ${STORED}, true, ${STORED}, null, null, null, null, null, null),
  (${HARD_SESSION}, 2, 2, 'turn_hard', 'message.completed', 'msg_2', null, ${STORED}, null, ${quoted(JSON.stringify(CALLS))}, null, null, null, null, null, null),
  (${HARD_SESSION}, 3, 3, 'turn_hard', 'turn.cancelled', 'msg_2', null, null, null, null, null, 4, 5, null, null, ${quoted(JSON.stringify([[1, 2, 3], encodeText(HOSTILE)]))}),
  (${HARD_SESSION}, 4, 4, 'turn_hard', 'turn.failed', null, null, null, null, null, null, 4, 5, 'turn-failed', ${STORED}, null),
  (${HARD_SESSION}, 5, 5, 'turn_hard', 'turn.cancelled', null, null, ${STORED}, null, null, null, 0, 0, null, null, null),
  (${HARD_SESSION}, 6, 6, '', 'turn.started', null, null, null, null, null, 2, null, null, null, null, null),
  (112, 50, 7, '', 'turn.completed', 'msg_9', null, null, null, null, null, 0, 0, null, null, null);
insert into erased_sessions values (112);
insert into turns (turn_id, session, session_id, agent, surface, caller, status, created_at, ended_at, model, counted_model, skill_ids, message_id, seq, error, detail,
  input, output, more, delivery_id, waited, has_events) values ('turn_hard', ${HARD_SESSION}, ${STORED}, 'main', 'rest', ${STORED}, 'failed', 1, 4, ${STORED}, ${STORED},
  ${quoted(JSON.stringify([encodeText(HOSTILE), "plain"]))}, 'msg_1', 2, 'turn-failed', ${STORED}, 1, 2, '{1,2,3}', 'dlv_hard', true, false);
insert into deliveries (delivery_id, at, surface, kept, request_id, mapping, sender_id, record, steps, step_count, body, bytes) values
  ('dlv_hard', 1, 'hooks', 'refused', 'req_1', ${STORED}, ${STORED}, ${quoted(
    JSON.stringify({
      operation: HOSTILE,
      method: "POST",
      path: HOSTILE,
      address: "::1",
      caller: HOSTILE,
      headers: "host: é",
      bytes: 5,
      status: 400,
    }),
  )}, ${quoted(
    JSON.stringify([
      { at: 1, name: "x", detail: HOSTILE },
      { at: 2, name: "y" },
    ]),
  )}, 2, 'b${BINARY.toString("base64")}', 1);
insert into events (ordinal, event_id, agent, text, metadata, size, caller, state, attempts, created_at, ended_at, reason, delivery_id, is_recorded)
  values (121, 'evt_dead', 'main', ${STORED}, ${STORED}, 1, ${STORED}, 'dead', 3, 1, 2, ${STORED}, ${STORED}, false);
insert into gateway_entries (first, last, at, news) values (500, 501, 9, ${quoted(JSON.stringify([{ ...DEAD, reason: encodeText(HOSTILE) }, HEALTH]))});
insert into late_attempts values ('turn_late', 2, 'node_1', 'main', 'rest', ${STORED}, 5.5);
insert into usage_counts (lane, hour, agent, model, surface, caller, messages, completed, failed, cancelled, attempts, latency_ms, input, output)
  select lane, 1795906800000, 'main', ${STORED}, 'rest', ${quoted("\u{1f600}".repeat(60))} || repeat('x', n), 1, 0, 0, 0, 1, 0.5, 1, 1
  from unnest('{all,other}'::text[]) as lane cross join generate_series(90, 120, 10) as n;
insert into api_keys (key_id, name, prefix, hash, scopes, created_at) values ('key_hard', ${STORED}, 'gw_', 'h', '["chat"]', 1);
insert into turns (turn_id, session, session_id, agent, surface, caller, status, created_at, counted_model, skill_ids, message_id, seq, waited, has_events)
  select 'turn_z', session, session_id, agent, surface, caller, 'queued', created_at, counted_model, '[]', 'msg_z', 90, false, true from turns
  where turn_id = (select turn_id from event_batches);
insert into event_batches (turn_id, agent, ordinals, most_attempts, stream_keep) select 'turn_z', 'watch', '{113,114}', 3, 9;
update turns set ready_at = extract(epoch from clock_timestamp()) * 1000 + 3600000, ready_order = null where turn_id = 'turn_01M8J7FK11QP1EHCHDF5E5X8RX';
update turns set ready_at = null, ready_order = null where turn_id = 'turn_01M8J7FQHC2D53GCTW0TE2EADC';
`;
