import type { DeliverySummary, Turn, TurnSummary } from "#generated/clients/typescript/src/rest-types.ts";

/** A unit of work: a request, or a turn that no request started, in the fields of a request. */
export type Work = Omit<DeliverySummary, "surface" | "method" | "request_id" | "bytes" | "message_id" | "sender_id">;

/** A turn that no request started, as a row among the requests. The turn of a heartbeat is named so. */
export function workOfTurn(turn: Omit<Turn, "reply">): Work {
  const { turn_id, session_id, agent, preview, reply_preview, ended_at, announcement, error, usage } = turn;
  const isBeat = turn.surface === "heartbeat";
  // The message of a heartbeat starts with the number of its events, followed by their ids.
  const events = isBeat ? /^\d+ system events?\b/.exec(preview ?? "")?.[0] : undefined;
  return {
    delivery_id: turn_id,
    at: turn.created_at,
    operation: "Turn",
    path: "",
    address: "",
    caller: isBeat ? null : turn.caller,
    outcome: turn.status,
    status: null,
    mapping: null,
    replay_of: null,
    agent,
    session_id,
    turn_id,
    event_id: null,
    preview: isBeat ? ["Heartbeat", events].filter(Boolean).join(" · ") : preview,
    reply_preview,
    ended_at,
    tokens: usage?.total ?? null,
    announcement,
    error: error && { name: error.name, detail: error.detail ?? null },
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

/** The maximum number of characters of a reply that are stored while it is written. */
const MOST_WRITTEN = 300;

/** A reply with one more piece. A new attempt replaces the reply; an omitted part is a gap. */
export function writtenAfter(before: Written | undefined, { offset, text }: { offset: number; text: string }): Written {
  const { text: start, length } = before && offset > 0 ? before : { text: "", length: 0 };
  const piece = offset < length ? text.slice(length - offset) : offset > length ? `…${text}` : text;
  return { text: (start + piece).slice(-MOST_WRITTEN), length: Math.max(length, offset + text.length) };
}
