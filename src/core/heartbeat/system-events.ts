import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import type { CoreParts } from "#core/parts.ts";
import type { CoreSettings } from "#core/settings.ts";
import { IDEMPOTENCY_MS } from "#core/turns/turns.ts";
import { GatewayError } from "#kit/errors.ts";
import { HOPS_HEADER, isLoop, loopWords } from "#kit/hops.ts";
import { idLike, newId } from "#kit/ids.ts";
import type { EventOrder, SystemEvent } from "#store/store.ts";

/** The request of a surface that queues an event. */
export type EventRequest = Pick<EventOrder, "text" | "metadata" | "caller" | "delivery"> & {
  /** Undefined is the default agent. */
  agent: string | undefined;
  mode: "next-heartbeat" | "now";
  /** The number of announcements and agents that the event has passed through. */
  hops: number;
  idempotency: { key: string; hash: string } | undefined;
};

type QueuedEvent = { event: SystemEvent; replayed: boolean };

/** The number of events that are marked dead in one transaction. */
const FAILED_AT_ONCE = 100;

/** The events that wait for an agent's heartbeat. */
export function createSystemEvents({ store, agents, clock, events, settings, admit, inBackground }: CoreParts) {
  let refused = 0;

  const queueNew = (request: EventRequest): Promise<QueuedEvent> => {
    // A turn handles many events together, and this event would make it fail for all of them.
    if (isLoop(request.hops)) throw new GatewayError("invalid-request", `The event is refused: ${loopWords()}.`);
    admit();
    const agent = agents.get(request.agent);
    if (agent.heartbeatMs === undefined && request.mode !== "now") throw heartbeatOff(agent.name);
    return store.queueEvent(orderOf(request, agent.name, clock.now(), settings().limits));
  };

  const get = async (eventId: string): Promise<SystemEvent> => {
    const event = await store.getEvent(eventId);
    if (!event) throw notFound(eventId);
    return event;
  };

  return {
    /**
     * Stores the event, its idempotency key and its delivery in one transaction, and resolves when they are stored. Rejects an event that no
     * beat would handle. A repeated request gets the first answer, even if the agent was removed or the queue is full.
     */
    async queue(request: EventRequest): Promise<QueuedEvent> {
      const event = request.idempotency && (await store.findEventReplay(request.idempotency, clock.now()));
      if (event) return { event, replayed: true };
      try {
        return await queueNew(request);
      } catch (error) {
        const { name } = GatewayError.from(error);
        const isOfAll = name === "gateway-busy" || name === "store-full";
        // A sender that used up its share does not degrade the gateway.
        if (isOfAll) refused++;
        if (isOfAll || name === "share-busy" || name === "share-full") events.eventRefused({ reason: name });
        throw error;
      }
    },

    get,

    /** Queues a dead event again. An agent whose heartbeat is off beats now, because no later beat would handle the event. */
    async replay(eventId: string, by: string): Promise<SystemEvent> {
      const { status, agent, deliveryId } = await get(eventId);
      if (status !== "dead") throw new GatewayError("event-not-dead", `The event is ${status}.`);
      const beatNow = agents.get(agent).heartbeatMs === undefined;
      const now = clock.now();
      const event = await store.requeueEvent(eventId, { now, beatNow, streamKeep: GATEWAY_STORED_ENTRIES });
      if (!event) throw notFound(eventId);
      if (deliveryId === undefined) return event;
      // If the timeline step cannot be stored, the event is still queued.
      const step = { at: now, name: "event.requeued", detail: JSON.stringify({ by }) };
      await store.addDeliveryStep(deliveryId, step).catch((error: unknown) => {
        events.storeFailed({ operation: "addDeliveryStep", error });
      });
      return event;
    },

    /** Marks the waiting events of an agent as dead, except those in a turn. Stops when `mayGoOn` returns false. */
    async giveUp(agent: string, reason: string, mayGoOn = () => true): Promise<void> {
      let count = 0;
      for (
        let some = FAILED_AT_ONCE;
        some === FAILED_AT_ONCE && store.agentCounts(agent).waitingEvents > 0;
        count += some
      ) {
        some = await inBackground(() => {
          const end = { now: clock.now(), streamKeep: GATEWAY_STORED_ENTRIES, limit: FAILED_AT_ONCE };
          return mayGoOn() ? store.failQueuedEvents(agent, reason, end) : 0;
        });
      }
      if (count > 0) events.eventsGivenUp({ agent, count, reason });
    },

    /** The number of events that this process has refused because the queue or the store was full. */
    refused: (): number => refused,
  };
}

export type SystemEvents = ReturnType<typeof createSystemEvents>;

function orderOf(
  request: EventRequest,
  agent: string,
  now: number,
  { store, recorder }: CoreSettings["limits"],
): EventOrder {
  return {
    now,
    eventId: request.delivery ? idLike("evt", request.delivery.deliveryId, now) : newId("evt", now),
    agent,
    text: request.text,
    metadata: request.hops > 0 ? withHops(request.metadata, request.hops) : request.metadata,
    caller: request.caller,
    beatNow: request.mode === "now",
    idempotency: request.idempotency && { ...request.idempotency, expiresAt: now + IDEMPOTENCY_MS },
    delivery: request.delivery,
    limits: store,
    recorder,
    streamKeep: GATEWAY_STORED_ENTRIES,
  };
}

/** The hops are stored in the metadata, because an event has no field for them. */
function withHops(metadata: string | undefined, hops: number): string {
  return JSON.stringify({ ...(metadata === undefined ? {} : JSON.parse(metadata)), [HOPS_HEADER]: hops });
}

function notFound(eventId: string): GatewayError {
  return new GatewayError("event-not-found", `No event has the id ${eventId}.`);
}

function heartbeatOff(agent: string): GatewayError {
  return new GatewayError(
    "heartbeat-off",
    `The heartbeat of the agent ${agent} is off. Send the event with mode: now.`,
  );
}
