import type { ErrorName } from "#kit/errors.ts";
import { GatewayError } from "#kit/errors.ts";
import { decodeCursor } from "#store/cursors.ts";
import { queuedEvent } from "#store/queued-event.ts";
import type { EventOrder, Store, SystemEvent } from "#store/store.ts";
import { arrearsOf, handOver, noteBeats, type PlannedBeat } from "./beats.ts";
import { ringView, storeBytes } from "./deliveries.ts";
import { deliveryRow } from "./delivery-codec.ts";
import { type EventRow, eventRow, orderRow, queuedNews, readEvent } from "./event-codec.ts";
import { type Frame, LANE } from "./frame.ts";
import { EVENT_BYTES } from "./functions/events.ts";
import { entriesOf } from "./gateway-stream.ts";
import { createHoldBack } from "./handing-over.ts";
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
    most: MOST_ORDERS,
    // The limits are judged by what is known when a call leaves.
    atOnce: 1,
    bytesOf: ({ text, delivery }) => text.length + (delivery?.bytes ?? 0),
    // Who hands events over has to get at the database too: where they come faster than they go, others wait for it.
    pauseOf: createHoldBack(() => arrearsOf(frame)),
    call: (orders, again) => {
      const kept = again ? undefined : keepArgs(frame, orders);
      if (kept) return ["keep_events", kept];
      return ["queue_events", [...queueArgs(frame, orders), again, LANE, frame.time()]];
    },
    heard: ({ beats, first, results }, orders) => {
      noteBeats(frame, beats as readonly PlannedBeat[]);
      for (const outcome of results as Outcome[]) if (typeof outcome === "number") frame.handingOver.came(outcome);
      if (typeof first !== "number") return;
      const at = (orders.at(-1) as EventOrder).now;
      frame.gatewayTellings.own(first, orders.length, () => entriesOf({ first, at, news: orders.map(queuedNews) }));
    },
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
      if (after > 0) handOver(frame, agent, after);
      const rows = await frame.query<EventRow>(READ_QUEUED, [agent, after, through, limit, bytes]);
      return rows.map(readEvent);
    },

    getEvent: (eventId) => getEvent(frame, eventId),

    listEvents: async ({ agent, status, limit, cursor }) => {
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeCursor(cursor);
      // As text in the query, so that it fits the index of those that wait.
      const ofStatus = status === undefined ? "" : `and state = '${status}'`;
      const ofAgent = agent === undefined ? "" : "and agent = $3";
      const rows = await frame.query<EventRow & { matching: number }>(
        `with matching as (
          select ordinal, size from events where ordinal < $1 ${ofStatus} ${ofAgent} order by ordinal desc limit $2
        ), fitting as (
          select ordinal from (select ordinal, sum(size) over (order by ordinal desc) - size as before from matching) as summed
          where before < ${PAGE_BYTES}
        )
        select *, taken_by(events) as taken_by, (select count(*) from matching) as matching from events
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

/** For orders that are all kept, by what this node knows: most are, and it is the cheaper way. Undefined where they must be looked at. */
const keepArgs = (frame: Frame, orders: readonly EventOrder[]): unknown[] | undefined => {
  let open = frame.counts.of("events");
  const held = storeBytes(frame);
  let bytes = 0;
  const rows: ReturnType<typeof eventRow>[] = [];
  const deltas: Record<string, number> = {};
  const asking = new Set<string>();
  for (const order of orders) {
    const { agent, limits, idempotency, beatNow } = order;
    if (idempotency || open >= limits.events || held + bytes >= limits.storeBytes) return undefined;
    const row = eventRow(order);
    rows.push(row);
    open++;
    bytes += row.size + EVENT_BYTES;
    deltas[`waiting ${agent}`] = (deltas[`waiting ${agent}`] ?? 0) + 1;
    if (beatNow) asking.add(agent);
  }
  const { now, streamKeep } = orders.at(-1) as EventOrder;
  return [
    JSON.stringify(rows),
    deliveriesOf(orders),
    JSON.stringify({ ...deltas, events: rows.length, bytes }),
    JSON.stringify(orders.map(queuedNews)),
    [...asking],
    ringOf(frame, orders),
    now,
    streamKeep,
    LANE,
    frame.time(),
  ];
};

const queueArgs = (frame: Frame, orders: readonly EventOrder[]): unknown[] => {
  const keys = orders.some(({ idempotency }) => idempotency !== undefined);
  const view = { open: frame.counts.of("events"), bytes: storeBytes(frame), keys };
  return [JSON.stringify(orders.map(orderRow)), deliveriesOf(orders), JSON.stringify(view), ringOf(frame, orders)];
};

/** Null where none is recorded. */
const deliveriesOf = (orders: readonly EventOrder[]): string | null => {
  const rows = orders.flatMap(({ delivery, eventId }, order) =>
    delivery ? [deliveryRow(delivery, { order, kept: "event", eventId })] : [],
  );
  return rows.length === 0 ? null : JSON.stringify(rows);
};

const ringOf = (frame: Frame, [first]: readonly EventOrder[]): string =>
  JSON.stringify(ringView(frame, (first as EventOrder).recorder));

// One way through the rows that wait: a join back to them was planned by what the table had once held.
const READ_QUEUED = `
  select * from (
    select waiting.*, sum(size) over (order by ordinal) as sum_of_sizes, row_number() over (order by ordinal) as place from (
      select * from events
      where agent = $1 and state = 'queued' and ordinal > $2 and ordinal <= $3 and ordinal <> all ((select taken_events($1))::bigint[])
      order by ordinal limit $4
    ) as waiting
  ) as summed where sum_of_sizes <= $5 or place = 1 order by ordinal`;

const getEvent = async (frame: Frame, eventId: string): Promise<SystemEvent | undefined> => {
  const [row] = await frame.query<EventRow>("select *, taken_by(events) as taken_by from events where event_id = $1", [
    keepText(eventId),
  ]);
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
