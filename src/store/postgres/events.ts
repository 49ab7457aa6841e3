import type { ErrorName } from "#core/errors.ts";
import { GatewayError } from "#core/errors.ts";
import { decodeCursor } from "#store/cursors.ts";
import type { EventOrder, Store, SystemEvent } from "#store/store.ts";
import { noteBeats, type PlannedBeat } from "./beats.ts";
import { ringView, storeBytes } from "./deliveries.ts";
import { deliveryRow } from "./delivery-codec.ts";
import { type EventRow, orderRow, queuedEvent, readEvent } from "./event-codec.ts";
import { type Frame, LANE } from "./frame.ts";
import { pageOf } from "./pages.ts";
import { keepKey, keepText } from "./texts.ts";

type EventMethods = Pick<
  Store,
  | "queueEvent"
  | "findEventReplay"
  | "readQueuedEvents"
  | "getEvent"
  | "listEvents"
  | "requeueEvent"
  | "failQueuedEvents"
>;

/** What became of an order: the ordinal of its event, the event that it repeats, or why it was refused. */
type Outcome = number | { event: EventRow; kept?: true } | { refused: ErrorName; held?: number };

/** So many orders go in one call. */
const MOST_ORDERS = 200;
const BUSY_HINT_MS = 1_000;
/** A page of events ends when it holds so many: it goes out as one answer. */
const PAGE_BYTES = 1024 * 1024;

export const eventMethods = (frame: Frame): EventMethods => {
  const queue = frame.batcher<EventOrder, Outcome>({
    name: "queue_events",
    most: MOST_ORDERS,
    // The limits are judged by what is known when a call leaves.
    atOnce: 1,
    bytesOf: ({ text, delivery }) => text.length + (delivery?.bytes ?? 0),
    args: (orders, again) => [...queueArgs(frame, orders), again, LANE, frame.time()],
    heard: (answer) => noteBeats(frame, answer.beats as readonly PlannedBeat[]),
  });
  return {
    queueEvent: async (order) => {
      const outcome = await queue(order);
      if (typeof outcome === "number") return { event: queuedEvent(order, outcome), replayed: false };
      if ("event" in outcome) return { event: readEvent(outcome.event), replayed: !outcome.kept };
      throw refusalOf(outcome.refused, outcome.held);
    },

    findEventReplay: async ({ key, hash }, now) => {
      const [known] = await frame.query<{ hash: string; event_id: string | null }>(
        "select hash, event_id from idempotency_keys where key = $1 and expires_at > $2",
        [keepKey(key), now],
      );
      if (!known) return undefined;
      if (known.hash !== hash || known.event_id === null) throw refusalOf("idempotency-mismatch");
      const event = await getEvent(frame, known.event_id);
      if (!event) throw refusalOf("event-not-found");
      return event;
    },

    readQueuedEvents: async ({ agent, after, through, limit, bytes }) => {
      const rows = await frame.query<EventRow>(READ_QUEUED, [agent, after, through, limit, bytes]);
      return rows.map(readEvent);
    },

    getEvent: (eventId) => getEvent(frame, eventId),

    listEvents: async ({ agent, status, limit, cursor }) => {
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeCursor(cursor);
      const ofStatus = status === undefined ? "" : `and state ${STATES[status]}`;
      const ofAgent = agent === undefined ? "" : "and agent = $3";
      const rows = await frame.query<EventRow & { matching: number }>(
        `with matching as (
          select ordinal, size from events where ordinal < $1 ${ofStatus} ${ofAgent} order by ordinal desc limit $2
        ), fitting as (
          select ordinal from (select ordinal, sum(size) over (order by ordinal desc) - size as before from matching) as summed
          where before < ${PAGE_BYTES}
        )
        select *, (select count(*) from matching) as matching from events
        where ordinal in (select ordinal from fitting) order by ordinal desc`,
        [before, limit + 1, ...(agent === undefined ? [] : [agent])],
      );
      return pageOf(rows, limit, readEvent, rows[0]?.matching);
    },

    requeueEvent: async (eventId, { now, beatNow, streamKeep }) => {
      const args = [eventId, now, beatNow, streamKeep, LANE, frame.time()];
      const answer = await frame.call<{ event: EventRow; beats?: PlannedBeat[] } | null>("requeue_event", args);
      noteBeats(frame, answer?.beats);
      return answer ? readEvent(answer.event) : undefined;
    },

    failQueuedEvents: async (agent, reason, { now, streamKeep, limit }) => {
      const args = [agent, keepText(reason), now, streamKeep, limit, LANE];
      return (await frame.call<{ gone: number }>("fail_queued_events", args)).gone;
    },
  };
};

const queueArgs = (frame: Frame, orders: readonly EventOrder[]): [string, string, string] => {
  const deliveries = orders.flatMap(({ delivery, eventId }, order) =>
    delivery ? [deliveryRow(delivery, { order, kept: "event", eventId })] : [],
  );
  const { recorder } = orders[0] as EventOrder;
  const keys = orders.some(({ idempotency }) => idempotency !== undefined);
  const view = { open: frame.counts.of("events"), bytes: storeBytes(frame), ring: ringView(frame, recorder), keys };
  return [JSON.stringify(orders.map(orderRow)), JSON.stringify(deliveries), JSON.stringify(view)];
};

/** As text in the query, so that it fits the index of those that wait. */
const STATES = { queued: "in ('queued', 'taken')", handled: "= 'handled'", dead: "= 'dead'" } as const;

const READ_QUEUED = `
  with waiting as (
    select ordinal, size from events
    where agent = $1 and state = 'queued' and ordinal > $2 and ordinal <= $3 order by ordinal limit $4
  ), fitting as (
    select ordinal from (
      select ordinal, sum(size) over (order by ordinal) as sum, row_number() over (order by ordinal) as n from waiting
    ) as summed where sum <= $5 or n = 1
  )
  select * from events where state = 'queued' and ordinal in (select ordinal from fitting) order by ordinal`;

const getEvent = async (frame: Frame, eventId: string): Promise<SystemEvent | undefined> => {
  const [row] = await frame.query<EventRow>("select * from events where event_id = $1", [keepText(eventId)]);
  return row && readEvent(row);
};

const refusalOf = (name: ErrorName, held = 0): GatewayError => {
  switch (name) {
    case "gateway-busy":
      return new GatewayError(name, `${held} events wait, limits.events.`, { retryAfterMs: BUSY_HINT_MS });
    case "store-full":
      return new GatewayError(name, `The store holds ${held} bytes, limits.storeBytes.`, {
        retryAfterMs: BUSY_HINT_MS,
      });
    case "event-not-found":
      return new GatewayError(name, "The event of this idempotency key is not kept any more.");
    default:
      return new GatewayError(name, "The key was used with another body.");
  }
};
