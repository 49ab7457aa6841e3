/** The records of incoming work: system events and their beats, announcements, and recorded requests. */

/** The interface that a request came through. */
export type Surface = "rest" | "rpc" | "hooks" | "heartbeat";

/** The status of an event that `/hooks/wake` queued for an agent. It stays `queued` while a turn works on the event. */
export type EventStatus = "queued" | "handled" | "dead";
export type SystemEvent = {
  eventId: string;
  agent: string;
  text: string;
  /** The data beside the text, as JSON. */
  metadata: string | undefined;
  /** The name of the token that sent it. */
  caller: string;
  status: EventStatus;
  /** The number of turns that tried it and failed. */
  attempts: number;
  createdAt: number;
  /** The time when it was handled or given up. */
  endedAt: number | undefined;
  /** The turn that works on it, or the last that did. */
  turnId: string | undefined;
  /** Why the last turn that failed did. */
  reason: string | undefined;
  deliveryId: string | undefined;
  /** Its place among all events: grows with each that is queued, also when a dead one is queued again. */
  ordinal: number;
};

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
  limits: { events: number; storeBytes: number };
  recorder: RecorderLimits;
  /** Entries that the gateway's stream keeps. */
  streamKeep: number;
};

/** An agent's beat. `nextAt` is the time when the next one is due; undefined when none is planned. */
export type Beat = { agent: string; nextAt: number | undefined; running: boolean };

/** The right to hold an agent's beat until its lease ends. It takes events up to `through`. */
export type BeatClaim = { agent: string; node: string; fence: number; through: number };

/** A reply on its way to a channel; one for each turn that asked for it and completed. */
export type Announcement = {
  turnId: string;
  sessionId: string;
  agent: string;
  channel: string;
  /** The number of announcements in the chain that started the turn. */
  hops: number;
  deliveryId: string | undefined;
  createdAt: number;
  /** The number of earlier attempts. */
  attempts: number;
};
export type AnnouncementClaim = { turnId: string; node: string; fence: number };
export type ClaimedAnnouncement = { claim: AnnouncementClaim; announcement: Announcement };

/** A step of a delivery's timeline that no journal tells: `detail` is data as JSON, or undefined. */
export type DeliveryStep = { at: number; name: string; detail: string | undefined };

/** How a request was answered, where no turn and no event tells it. */
export type DeliveryAnswer = "accepted" | "repeated" | "unmatched" | "refused" | "challenge";

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

/** A delivery with all that the recorder knows of it. */
export type RecordedDelivery = Delivery & WorkIds & { outcome: DeliveryOutcome };

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
  limit: number;
  cursor?: string;
};

/** One inbound request, as the flight recorder keeps it. */
export type Delivery = {
  deliveryId: string;
  at: number;
  surface: Surface;
  operation: string;
  method: string;
  path: string;
  address: string;
  requestId: string;
  caller: string;
  /** A line `name: value` for each header, names in small letters, without those that are secret. One text, as there are many. */
  headers: string;
  /** As it came, with a character for each byte; undefined where bodies are switched off, or after its session was deleted. */
  body: string | undefined;
  bytes: number;
  answer: DeliveryAnswer;
  /** The HTTP status of the answer, where that was given before it was recorded. */
  status: number | undefined;
  mapping: string | undefined;
  /** The delivery that this one sends again. */
  replayOf: string | undefined;
  /** The id under which its sender knows it. */
  senderId: string | undefined;
  /** The steps of its way in, then the later steps that no journal tells; in order. */
  steps: readonly DeliveryStep[];
};

/** `refused` is the number of requests of refused strangers that are kept beside the others. */
export type RecorderLimits = { entries: number; bytes: number; refused: number };
