import type {
  Announcement,
  Delivery,
  DeliveryOutcome,
  DeliveryWork,
  EventOrder,
  GatewayNews,
  SystemEvent,
  Turn,
  TurnEnd,
  TurnOrder,
} from "#store/store.ts";
import { LEASE_MS } from "./world.ts";

export type ModelEvent = { event: SystemEvent; takenBy: string | undefined };
export type ModelBeat = { due: number | undefined; isAsked: boolean; fence: number | undefined; leaseEnds: number };
export type ModelAnnouncement = { of: Announcement; due: number; fence: number | undefined; leaseEnds: number };
export type ModelDelivery = { delivery: Delivery; work: DeliveryWork; isErased: boolean };

const RING = { entries: 20, refused: 5 };
export const RING_LIMITS = { ...RING, bytes: 1e9 };

export const createInboundModel = (turnOf: (turnId: string) => Turn | undefined) => {
  const events = new Map<string, ModelEvent>();
  const keys = new Map<string, string>();
  const beats = new Map<string, ModelBeat>();
  /** Since when agents are paused. */
  const paused = new Map<string, number>();
  const announcements = new Map<string, ModelAnnouncement>();
  const deliveries = new Map<string, ModelDelivery>();
  /** Ids of deliveries that may go, the oldest first: of refused ones, and of all others. */
  const finished = { refused: [] as string[], others: [] as string[] };
  const news: string[] = [];

  const tell = (of: GatewayNews) => news.push(JSON.stringify(of));
  const isRefused = ({ delivery }: ModelDelivery): boolean => delivery.answer === "refused";
  const letGo = (kind: "refused" | "others", most: number): void => {
    const size = () => [...deliveries.values()].filter((of) => isRefused(of) === (kind === "refused")).length;
    while (size() > most && finished[kind].length > 0) deliveries.delete(finished[kind].shift() as string);
  };
  const keep = (delivery: Delivery | undefined, work: DeliveryWork, isFinished = false): void => {
    if (!delivery) return;
    const kind = delivery.answer === "refused" ? "refused" : "others";
    deliveries.set(delivery.deliveryId, { delivery, work, isErased: false });
    if (isFinished) finished[kind].push(delivery.deliveryId);
    letGo(kind, kind === "refused" ? RING.refused : RING.entries);
  };
  const finishDelivery = (deliveryId: string | undefined): void => {
    if (deliveryId === undefined || !deliveries.has(deliveryId)) return;
    if (!finished.others.includes(deliveryId)) finished.others.push(deliveryId);
  };
  const endEvent = ({ event }: ModelEvent, status: "handled" | "dead", now: number): void => {
    Object.assign(event, { status, endedAt: now });
    finishDelivery(event.deliveryId);
    const { eventId, agent: agentName, turnId = "", attempts, reason = "" } = event;
    if (status === "handled") tell({ name: "event.handled", eventId, agentName, turnId });
    else tell({ name: "event.dead", eventId, agentName, attempts, reason });
  };
  const beatOf = (agent: string): ModelBeat => {
    const beat = beats.get(agent) ?? { due: undefined, isAsked: false, fence: undefined, leaseEnds: 0 };
    beats.set(agent, beat);
    return beat;
  };
  const ask = (agent: string, time: number): void => {
    const beat = beatOf(agent);
    if (!beat.isAsked && beat.fence === undefined) beat.due = time;
    beat.isAsked = true;
  };
  const isFree = ({ event, takenBy }: ModelEvent): boolean => event.status === "queued" && takenBy === undefined;
  const inOrder = (): ModelEvent[] => [...events.values()].sort((a, b) => a.event.ordinal - b.event.ordinal);

  return {
    events,
    beats,
    paused,
    announcements,
    deliveries,
    news,
    keep,
    beatOf,
    ask,
    inOrder,
    waiting: (agent: string) => inOrder().filter((of) => of.event.agent === agent && isFree(of)),
    open: () => [...events.values()].filter(({ event }) => event.status === "queued").length,

    /** False where it is so already. */
    setPaused(agentName: string, isPaused: boolean, now: number): boolean {
      if (paused.has(agentName) === isPaused) return false;
      if (isPaused) paused.set(agentName, now);
      else paused.delete(agentName);
      tell({ name: isPaused ? "agent.paused" : "agent.resumed", agentName });
      return true;
    },

    /** The error that the order is refused with; the event that it repeats; or undefined when it queues one. */
    check({ idempotency, limits }: EventOrder): string | SystemEvent | undefined {
      const known = idempotency && keys.get(idempotency.key);
      if (known) {
        const [eventId = "", hash] = known.split(" ");
        return hash !== idempotency.hash ? "idempotency-mismatch" : (events.get(eventId)?.event ?? "event-not-found");
      }
      return this.open() >= limits.events ? "gateway-busy" : undefined;
    },

    queue(order: EventOrder, ordinal: number, time: number): SystemEvent {
      const { eventId, agent, text, metadata, caller, now: createdAt, delivery, idempotency } = order;
      const none = { endedAt: undefined, turnId: undefined, reason: undefined };
      const deliveryId = delivery?.deliveryId;
      const of = { eventId, agent, text, metadata, caller, createdAt, deliveryId, ordinal };
      const event: SystemEvent = { ...of, ...none, status: "queued", attempts: 0 };
      events.set(eventId, { event, takenBy: undefined });
      if (idempotency) keys.set(idempotency.key, `${eventId} ${idempotency.hash}`);
      keep(delivery, { eventId });
      tell({ name: "event.queued", eventId, agentName: agent });
      if (order.beatNow) ask(agent, time);
      return event;
    },

    /** A turn started: its delivery is kept, and its events are bound to it. */
    started({ turnId, delivery, session, events: taken }: TurnOrder): void {
      keep(delivery, { turnId, sessionId: session.sessionId });
      for (const eventId of taken?.ids ?? []) {
        const of = events.get(eventId) as ModelEvent;
        of.takenBy = turnId;
        of.event.turnId = turnId;
      }
    },

    /** A turn ended, or was erased with its session. */
    ended(turn: Turn, order: TurnOrder, { now, status, error }: Pick<TurnEnd, "now" | "status" | "error">): void {
      finishDelivery(turn.deliveryId);
      for (const of of [...events.values()].filter(({ takenBy }) => takenBy === turn.turnId)) {
        of.takenBy = undefined;
        if (status === "completed") {
          endEvent(of, "handled", now);
          continue;
        }
        of.event.attempts++;
        of.event.reason = error ? (error.detail ?? error.name) : `The turn was ${status}.`;
        if (of.event.attempts >= (order.events?.maxAttempts ?? 0)) endEvent(of, "dead", now);
      }
      const { channel, hops = 0 } = order.announce ?? {};
      if (channel === undefined || status !== "completed") return;
      const { turnId, sessionId, agent, deliveryId } = turn;
      const announcement = { turnId, sessionId, agent, channel, hops, deliveryId, createdAt: now, attempts: 0 };
      announcements.set(turnId, { of: announcement, due: 0, fence: undefined, leaseEnds: 0 });
    },

    erased(sessionId: string): void {
      for (const [turnId, { of }] of announcements) if (of.sessionId === sessionId) announcements.delete(turnId);
      for (const of of deliveries.values()) of.isErased ||= of.work.sessionId === sessionId;
    },

    erasedTurn(turnId: string): void {
      for (const of of deliveries.values()) of.isErased ||= of.work.turnId === turnId;
    },

    isAnnouncing: (sessionId: string) => [...announcements.values()].some(({ of }) => of.sessionId === sessionId),

    requeue(eventId: string, ordinal: number): void {
      const of = events.get(eventId);
      if (of?.event.status !== "dead") return;
      Object.assign(of.event, { status: "queued", attempts: 0, endedAt: undefined, ordinal });
      tell({ name: "event.queued", eventId, agentName: of.event.agent });
    },

    giveUp(agent: string, reason: string, now: number, limit: number): number {
      const oldest = this.waiting(agent).slice(0, limit);
      for (const of of oldest) {
        of.event.reason = reason;
        endEvent(of, "dead", now);
      }
      return oldest.length;
    },

    ran(agentName: string, ran: { events: number; turnIds: readonly string[] }, nextAt: number | undefined): void {
      tell({ name: "heartbeat.ran", agentName, ...ran, nextAt: nextAt ?? null });
    },

    /** Answers the announcements that can be claimed, the oldest first. */
    claimable: (time: number): ModelAnnouncement[] =>
      [...announcements.values()].filter(({ fence, due }) => fence === undefined && due <= time),

    outcomeOf({ delivery, work, isErased }: ModelDelivery): DeliveryOutcome {
      if (delivery.answer !== "accepted") return delivery.answer;
      if (work.eventId !== undefined) return events.get(work.eventId)?.event.status ?? "gone";
      return (isErased ? undefined : turnOf(work.turnId ?? "")?.status) ?? "gone";
    },

    sweep(time: number, eventsBefore: number): void {
      for (const of of announcements.values()) if (of.fence !== undefined && of.leaseEnds <= time) of.fence = undefined;
      for (const beat of beats.values()) {
        if (beat.fence === undefined || beat.leaseEnds > time) continue;
        Object.assign(beat, { fence: undefined, due: time });
      }
      for (const [id, { event }] of events) if ((event.endedAt ?? Infinity) < eventsBefore) events.delete(id);
    },

    claimed: (time: number, fence: number) => ({ fence, leaseEnds: time + LEASE_MS }),
  };
};

export type InboundModel = ReturnType<typeof createInboundModel>;
