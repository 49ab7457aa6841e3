/** The part of `store.ts` for incoming work: system events and their beats, announcements, and the flight recorder. */
import type {
  AnnouncementClaim,
  Beat,
  BeatClaim,
  ClaimedAnnouncement,
  Delivery,
  DeliveryQuery,
  DeliveryStep,
  DeliveryWork,
  EventOrder,
  EventStatus,
  RecordedDelivery,
  RecorderLimits,
  SystemEvent,
} from "./inbound-records.ts";
import type { Page } from "./records.ts";

/** `store.ts` states the guarantees of all methods. */
export interface InboundStore {
  /**
   * Stores the event, its idempotency key, its delivery and the entry of the gateway's stream. A known key answers the first event
   * (`replayed`), with another hash it is `idempotency-mismatch`, and `event-not-found` when that event is not kept any more. Full:
   * `gateway-busy` (limits.events have not ended), `store-full`.
   */
  queueEvent(order: EventOrder): Promise<{ event: SystemEvent; replayed: boolean }>;
  /** The answer that `queueEvent` would give to a repeat, as in `findReplay`. */
  findEventReplay(key: { key: string; hash: string }, now: number): Promise<SystemEvent | undefined>;
  /**
   * Events of the agent that are queued and that no turn works on, with `after` < ordinal <= `through`, oldest first: at most `limit`,
   * and at most `bytes` of UTF-8 text and metadata, but always the first.
   */
  readQueuedEvents(query: {
    agent: string;
    after: number;
    through: number;
    limit: number;
    bytes: number;
  }): Promise<SystemEvent[]>;
  /** Kept until retention removes it: while it waits, and as long as `sweep` leaves it after its end. */
  getEvent(eventId: string): Promise<SystemEvent | undefined>;
  /** Newest queued first; `cursor` as with sessions. A page ends early once it holds a MiB of texts and metadata. */
  listEvents(query: {
    agent?: string;
    status?: EventStatus;
    limit: number;
    cursor?: string;
  }): Promise<Page<SystemEvent>>;
  /**
   * Queues a dead event again, behind all others and with no attempt counted; with `beatNow` the agent's next beat is due at once.
   * Undefined when there is none; another state changes nothing.
   */
  requeueEvent(
    eventId: string,
    requeue: { now: number; beatNow: boolean; streamKeep: number },
  ): Promise<SystemEvent | undefined>;
  /** Gives up queued events of an agent that no turn works on, the oldest, at most `limit`. Answers their number. */
  failQueuedEvents(
    agent: string,
    reason: string,
    end: { now: number; streamKeep: number; limit: number },
  ): Promise<number>;

  /**
   * Plans the agent's next beat `delayMs` from now. With `soonest` one that is planned for sooner stays; undefined plans none. One that
   * `beatNow` asked for and that has not begun stays due at once, under any plan.
   */
  planBeat(agent: string, plan: { now: number; delayMs: number | undefined; soonest: boolean }): Promise<void>;
  readBeat(agent: string): Promise<Beat>;
  /**
   * Claims the beats that are due, of these agents: no agent's beat is held twice at a time, and one whose lease ended is due again.
   * `through` is the newest event's ordinal then. `nextDueInMs` is the time until the next of them is due.
   */
  claimBeats(request: {
    now: number;
    node: string;
    leaseMs: number;
    agents: readonly string[];
  }): Promise<{ beats: BeatClaim[]; nextDueInMs: number | undefined }>;
  /** False when the claim does not hold any more. */
  extendBeat(claim: BeatClaim, leaseMs: number): Promise<boolean>;
  /**
   * Ends a beat and plans the next `delayMs` from now (undefined: none), or at once when `beatNow` came meanwhile; `ran` goes to the
   * gateway's stream. Answers when the next is due; false, and nothing kept, when the claim does not hold any more.
   */
  endBeat(
    claim: BeatClaim,
    end: {
      now: number;
      delayMs: number | undefined;
      ran: { events: number; turnIds: readonly string[] } | undefined;
      streamKeep: number;
    },
  ): Promise<Beat | false>;

  /**
   * Claims announcements that can be tried now, at most `freeOf(channel)` of a channel (0: none), oldest first. `nextDueInMs` is
   * the time until one that was given back with a delay can be tried.
   */
  claimAnnouncements(request: {
    node: string;
    leaseMs: number;
    limit: number;
    freeOf(channel: string): number;
  }): Promise<{ announcements: ClaimedAnnouncement[]; nextDueInMs: number | undefined }>;
  /**
   * Ends an announcement, or with `retryInMs` gives it back with an attempt more; `step` goes on its delivery's timeline. False, and
   * nothing kept, when the claim does not hold any more or the session was deleted.
   */
  endAnnouncement(
    claim: AnnouncementClaim,
    end: { retryInMs: number | undefined; step: DeliveryStep },
  ): Promise<boolean>;

  /**
   * Records a request that started nothing. `refused` ones have a ring of their own, of `recorder.refused` entries and an eighth of
   * `recorder.bytes`, so that strangers push out nothing else. `work` is the turn or event that it repeats, if any.
   */
  recordDelivery(delivery: Delivery, recorder: RecorderLimits, work?: DeliveryWork): Promise<void>;
  /** Adds a step to the timeline of a delivery that is still kept, unless that has two hundred. */
  addDeliveryStep(deliveryId: string, step: DeliveryStep): Promise<void>;
  /**
   * One that the recorder still keeps: the newest within its limits, and all whose turn or event has not ended. The others are let go in
   * the order of their ends: of turns that end at once one turn after another, each before the events it had.
   */
  getDelivery(deliveryId: string): Promise<RecordedDelivery | undefined>;
  /** Newest first, headers, bodies and steps left out; `cursor` as with sessions. Never works for more than a few milliseconds at a stretch. */
  listDeliveries(query: DeliveryQuery): Promise<Page<RecordedDelivery>>;
}
