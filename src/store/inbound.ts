/** The records of incoming work, and the part of `store.ts` for it: system events and their beats, announcements, the flight recorder. */

import { listOf, nested, number, optional, short, type TypeOf, text, typed } from "./fields.ts";

/** The bytes of a step of a delivery. */
const STEP_BYTES = 100;

/** `next` is the `cursor` of the next page. */
export type Page<T> = { items: T[]; next: string | undefined };

/** The interface of a request. */
export type Surface = "rest" | "rpc" | "hooks" | "heartbeat" | "schedule";

/** The status of an event that `/hooks/wake` queued for an agent. It stays `queued` while a turn works on the event. */
export type EventStatus = "queued" | "handled" | "dead";
export const EVENT = {
  eventId: short,
  agent: short,
  text: text,
  /** The data next to the text, as JSON. */
  metadata: optional(text),
  /** The name of the token that sent it. */
  caller: short,
  status: typed<EventStatus>(),
  /** The number of turns that tried it and failed. */
  attempts: number,
  createdAt: number,
  /** The time when it was handled or given up. */
  endedAt: optional(number),
  /** The turn that works on it, or the last that did. */
  turnId: optional(short),
  /** Why the last turn that failed did. */
  reason: optional(text),
  deliveryId: optional(short),
  /** Its place among all events: grows with each that is queued, also when a dead one is queued again. */
  ordinal: number,
  /** The bytes that count for its sender's share. Events of earlier versions do not have them. */
  bytes: optional(number),
};
export type SystemEvent = TypeOf<typeof EVENT>;

/** A request to queue an event. */
export type EventOrder = {
  now: number;
  eventId: string;
  agent: string;
  text: string;
  metadata: string | undefined;
  caller: string;
  /** The agent's next beat is due at once. */
  beatNow: boolean;
  idempotency: { key: string; hash: string; expiresAt: number } | undefined;
  delivery: Delivery | undefined;
  limits: { events: number; storeBytes: number; share: number };
  recorder: RecorderLimits;
  /** Entries that the gateway's stream keeps. */
  streamKeep: number;
};

/** An agent's beat. `nextAt` is the time when the next one is due; undefined when none is planned. */
export type Beat = { agent: string; nextAt: number | undefined; running: boolean };

/** The announcement of a turn's reply, as its turn and its delivery show it. */
export type AnnouncementState = "waiting" | "retrying" | "delivered" | "failed";
/** `reason`: why the last attempt failed. `hops` are those of the announcement's order. */
export const TURN_ANNOUNCEMENT = {
  channel: short,
  hops: number,
  state: typed<AnnouncementState>(),
  reason: optional(text),
  /** The address in the channel, if the turn's webhook had one. */
  to: optional(text),
  thread: optional(text),
};
export type TurnAnnouncement = TypeOf<typeof TURN_ANNOUNCEMENT>;

/** A message on its way to an endpoint. */
export type Outgoing = OutgoingReply | OutgoingNotification;
type Message = {
  /** It is the same at each attempt. */
  id: string;
  /** The number of announcements in the chain that led to it. */
  hops: number;
  createdAt: number;
  /** The number of earlier attempts. */
  attempts: number;
};
/** The reply of a turn that asked for its announcement and completed. Its id is that of the turn. */
export type OutgoingReply = Message & {
  endpoint: `channel:${string}`;
  sessionId: string;
  agent: string;
  channel: string;
  deliveryId: string | undefined;
};
/** A notification. Its id is that of the notification, which has its content. */
export type OutgoingNotification = Message & { endpoint: `notify:${string}` };
export type OutgoingClaim = { id: string; node: string; fence: number };
/**
 * The result of an attempt, which is set on the turn or the notification. Without a `state`, the state and the reason do not change. `step` is added to the
 * timeline of the delivery of a reply.
 */
export type OutgoingResult = {
  state: AnnouncementState | undefined;
  reason: string | undefined;
  code?: number | undefined;
  /** There was no request: the attempt of a notification does not count, and the status of its last attempt stays. */
  isUnsent?: true | undefined;
  step: DeliveryStep;
};
export type ClaimedMessage = { claim: OutgoingClaim; message: Outgoing };

/** A step of a delivery's timeline that is not in a journal: `detail` is data as JSON, or undefined. */
export const STEP = { at: number, name: short, detail: optional(text) };
export type DeliveryStep = TypeOf<typeof STEP>;

/** The answer to a request, if it is not in a turn or an event. */
export type DeliveryAnswer =
  | "accepted"
  | "repeated"
  | "coalesced"
  | "skipped"
  | "missed"
  | "unmatched"
  | "refused"
  | "challenge";

/** The outcome of a delivery, derived from its answer and its work. */
export type DeliveryOutcome =
  | Exclude<DeliveryAnswer, "accepted">
  | "queued"
  | "running"
  | "completed"
  | "failed"
  | "cancelled"
  | "handled"
  | "dead"
  /** Its work is not kept any more. */
  | "gone";

/** The turn or event that a delivery has to do with. */
export type WorkIds = {
  turnId: string | undefined;
  eventId: string | undefined;
  /** The session of its turn. */
  sessionId: string | undefined;
  /** The message of its turn. */
  messageId: string | undefined;
  /** The agent of its turn or event. */
  agent: string | undefined;
};
export type DeliveryWork = Partial<WorkIds>;

/** The name of an error and its detail. */
export const DELIVERY_ERROR = { name: short, detail: optional(text) };
export type DeliveryError = TypeOf<typeof DELIVERY_ERROR>;

/** The result of a delivery, derived from its turn or event. */
export type DeliveryResult = {
  outcome: DeliveryOutcome;
  /** The beginnings of the turn's message or the event's text, and of the turn's reply; undefined unless it shows words. */
  preview: string | undefined;
  replyPreview: string | undefined;
  endedAt: number | undefined;
  /** The tokens that its turn used; undefined until it has ended, and if its agent does not report them. */
  tokens: number | undefined;
  announcement: TurnAnnouncement | undefined;
  /** Why it was refused, its turn failed or its event is dead. */
  error: DeliveryError | undefined;
};

/** A delivery with all that the recorder knows of it. */
export type RecordedDelivery = Delivery & WorkIds & DeliveryResult;

export type DeliveryQuery = {
  surface?: Surface;
  outcome?: DeliveryOutcome;
  mapping?: string;
  agent?: string;
  sessionId?: string;
  /** The range of its arrival time: [from, to). */
  from?: number;
  to?: number;
  /** Any id that it has: its own, the request's, the message's, the turn's, the event's, the session's, the sender's. */
  id?: string;
  /** The state of its turn's announcement, and the channel of that. */
  announcement?: AnnouncementState;
  channel?: string;
  /**
   * Only deliveries recorded before this one. If it is no longer stored, the list continues from the time in its id,
   * and may repeat deliveries of that millisecond. `delivery-not-found` if it is not an id, `invalid-request` together with `cursor`.
   */
  before?: string;
  limit: number;
  cursor?: string;
};

/** One inbound request, as the flight recorder keeps it. */
export const DELIVERY = {
  deliveryId: short,
  at: number,
  surface: typed<Surface>(),
  operation: short,
  method: short,
  path: text,
  address: short,
  requestId: short,
  caller: short,
  /** False if bodies were switched off when the delivery was recorded. The delivery then has no previews of its message and reply. */
  showsWords: typed<boolean>(),
  bytes: number,
  answer: typed<DeliveryAnswer>(),
  /** The HTTP status of the answer, where that was given before it was recorded. */
  status: optional(number),
  mapping: optional(short),
  /** The delivery that this one sends again. */
  replayOf: optional(short),
  /** The id under which its sender knows it. */
  senderId: optional(short),
  /** The steps of its arrival, then the later steps that are not in a journal, in order. */
  steps: listOf(nested(STEP, STEP_BYTES)),
};
export type DeliveryContent = {
  /** A line `name: value` for each header, with names in lower case and without secret headers. A single text, because there are many headers. */
  headers: string;
  /** The body as it was received, with one character per byte. Undefined if bodies are switched off or the session was deleted. */
  body: string | undefined;
};
export type Delivery = TypeOf<typeof DELIVERY> & DeliveryContent;

/** `refused` is the maximum number of stored requests of refused unauthenticated callers, in addition to the others. */
export type RecorderLimits = { entries: number; bytes: number; refused: number };

/** `store.ts` states the guarantees of all methods. */
export interface InboundStore {
  /**
   * Stores the event, its idempotency key, its delivery and the entry of the gateway's stream. A known key answers the first event
   * (`replayed`), with another hash it is `idempotency-mismatch`, and `event-not-found` when that event is not kept any more. Full:
   * `gateway-busy` (limits.events have not ended), `store-full`; of the sender's share: `share-busy`, `share-full`.
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
  /** Returns the given agents whose beat is due or can continue, and the time until the next beat is due. A pause only prevents new beats. */
  dueBeats(agents: readonly string[]): Promise<{ due: string[]; nextDueInMs: number | undefined }>;
  /** Called when the agent was removed: plans no further beat. A running beat ends with its turn. */
  removeBeat(agent: string, drop: { now: number; streamKeep: number }): Promise<void>;

  /**
   * Claims messages that can be sent now, oldest first: at most `free[endpoint]` for an endpoint. For each endpoint that `free` does not name, at most
   * `others.free` messages that were created before `others.before`. Of an endpoint in `before`, only messages that were created before that time.
   * `nextDueInMs` is the time until a message that was released with a delay can be claimed.
   */
  claimOutgoing(request: {
    node: string;
    leaseMs: number;
    free: Readonly<Record<string, number>>;
    others: { free: number; before: number };
    before?: Readonly<Record<string, number>>;
  }): Promise<{ claimed: ClaimedMessage[]; nextDueInMs: number | undefined }>;
  /** Ends a message. Returns false and stores nothing if the claim is no longer valid or the session was deleted. */
  endOutgoing(claim: OutgoingClaim, end: OutgoingResult): Promise<boolean>;
  /** Returns a message to its queue with one more attempt. It can be claimed again after `delayMs`. Returns false as `endOutgoing` does. */
  releaseOutgoing(claim: OutgoingClaim, release: OutgoingResult & { delayMs: number }): Promise<boolean>;

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
  /** The deliveries with these ids that are still stored, in the form of `listDeliveries` and in the order of the ids. */
  readDeliveries(deliveryIds: readonly string[]): Promise<RecordedDelivery[]>;
  /**
   * Newest first, headers, bodies and steps left out; `cursor` as with sessions. Never works for more than a few milliseconds at a stretch.
   * A page ends early once it holds a MiB. With the filters by outcome, announcement or channel it looks at `MOST_SCANNED` deliveries at most,
   * so that it may hold fewer than `limit`, or none, and still have a `next`.
   */
  listDeliveries(query: DeliveryQuery): Promise<Page<RecordedDelivery>>;
}
