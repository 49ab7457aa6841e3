import type { EventStatus, SystemEvent } from "#store/store.ts";

/** As they are kept. One that waits may be a turn's: that is told by the turn. */
export const WAITS = 0;
export const HANDLED = 1;
export const DEAD = 2;
const STATUSES: readonly EventStatus[] = ["queued", "handled", "dead"];

export const statusOf = (state: number): EventStatus => STATUSES[state] as EventStatus;

/** The least and the most of the states that a status has; of any one without. */
export const statesOf = (status: EventStatus | undefined): [least: number, most: number] => {
  const state = status === undefined ? -1 : STATUSES.indexOf(status);
  return state === -1 ? [WAITS, DEAD] : [state, state];
};

/** What of an event never changes and is looked for by nobody. */
type Body = [text: string, metadata: string | null, caller: string, createdAt: number];

type Kept = [
  ordinal: number,
  eventId: string,
  agent: string,
  state: number,
  attempts: number,
  endedAt: number | null,
  turnId: string | null,
  reason: string | null,
  deliveryId: string | null,
  body: Body,
];

/** An event as one text: a row of many columns, and objects between two threads, cost several times as much. */
export const EVENT_TEXT = `'[' || ordinal || ',"' || event_id || '",' || json_quote(agent) || ',' || state || ',' || attempts
  || ',' || coalesce(ended_at, 'null') || ',' || coalesce('"' || turn_id || '"', 'null') || ',' || coalesce(reason, 'null')
  || ',' || coalesce('"' || delivery_id || '"', 'null') || ',' || body || ']'`;

export const encodeBody = (text: string, metadata: string | undefined, caller: string, createdAt: number): string =>
  JSON.stringify([text, metadata ?? null, caller, createdAt] satisfies Body);

/** An `EVENT_TEXT`, and the turn that works on the event. */
export type EventText = readonly [text: string, takenBy: string | undefined];

export const readEvent = ([text, takenBy]: EventText): SystemEvent => {
  const event = eventOf(JSON.parse(text) as Kept);
  if (takenBy !== undefined) event.turnId = takenBy;
  return event;
};

/** Of many texts with commas between them, that no turn works on. */
export const readEvents = (texts: string): SystemEvent[] => (JSON.parse(`[${texts}]`) as Kept[]).map(eventOf);

const eventOf = ([
  ordinal,
  eventId,
  agent,
  state,
  attempts,
  endedAt,
  turnId,
  reason,
  deliveryId,
  body,
]: Kept): SystemEvent => {
  const [text, metadata, caller, createdAt] = body;
  return {
    eventId,
    agent,
    text,
    metadata: metadata ?? undefined,
    caller,
    status: statusOf(state),
    attempts,
    createdAt,
    endedAt: endedAt ?? undefined,
    turnId: turnId ?? undefined,
    reason: reason ?? undefined,
    deliveryId: deliveryId ?? undefined,
    ordinal,
  };
};
