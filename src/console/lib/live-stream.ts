import type { DeliverySummary, TurnSummary } from "#generated/clients/typescript/src/rest-types.ts";

/** A unit of work: a request, or a turn that no request started, in the fields of a request. */
export type Work = DeliverySummary;

/** A turn that no request started, as a row among the requests. The turn of a heartbeat is named so. */
export function workOfTurn(turn: TurnSummary): Work {
  return {
    delivery_id: turn.turn_id,
    at: turn.created_at,
    surface: "rest",
    operation: turn.surface === "heartbeat" ? "Heartbeat" : "Turn",
    method: "",
    path: "",
    address: "",
    request_id: "",
    caller: turn.surface === "heartbeat" ? null : turn.caller,
    bytes: 0,
    outcome: turn.status,
    status: null,
    mapping: null,
    replay_of: null,
    sender_id: null,
    agent: turn.agent,
    message_id: null,
    session_id: turn.session_id,
    turn_id: turn.turn_id,
    event_id: null,
    // A heartbeat's message begins with the number of its events, and goes on with their ids.
    preview: /^\d+ system events?\b/.exec(turn.preview ?? "")?.[0] ?? turn.preview,
    reply_preview: turn.reply_preview,
    ended_at: turn.ended_at,
    tokens: turn.usage?.total ?? null,
    announcement: turn.announcement,
    error: turn.error && { name: turn.error.name, detail: turn.error.detail ?? null },
  };
}

/** The address of a unit of work. */
export function pathOfWork({ delivery_id: id }: Pick<Work, "delivery_id">): string {
  return id.startsWith("turn_") ? `/t/${id}` : `/d/${id}`;
}

/** Requests, and turns that none of them started, as one list: the newest first, and at most so many. */
export function streamOf(requests: readonly Work[], turns: readonly TurnSummary[], most: number): Work[] {
  return [...turns.filter(({ delivery_id }) => delivery_id === null).map(workOfTurn), ...requests]
    .sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0))
    .slice(0, most);
}

/** The end of a reply that is being written, and its length so far. */
export type Written = { text: string; length: number };

/** The most characters of a reply that are kept while it is written. */
const MOST_WRITTEN = 300;

/** A reply with one more piece of it. An attempt that begins anew replaces the reply; what was left out is a gap. */
export function writtenAfter(before: Written | undefined, { offset, text }: { offset: number; text: string }): Written {
  const { text: start, length } = before && offset > 0 ? before : { text: "", length: 0 };
  const piece = offset < length ? text.slice(length - offset) : offset > length ? `…${text}` : text;
  return { text: (start + piece).slice(-MOST_WRITTEN), length: Math.max(length, offset + text.length) };
}
