/** The final answers of the gateways, read only over the public API. */
export type FoundTurn = {
  turnId: string;
  sessionId: string;
  status: "queued" | "running" | "completed" | "failed" | "cancelled";
  attempt: number;
  reply: string | null;
  error: string | null;
};

export type FoundEvent = {
  eventId: string;
  agent: string;
  status: "queued" | "handled" | "dead";
  text: string;
  attempts: number;
  turnId: string | null;
};

export type FoundMessage = { messageId: string; role: string; text: string; turnId: string; seq: number };

export type FoundSession = {
  sessionId: string;
  messageCount: number;
  /** All of them, the oldest first. */
  messages: FoundMessage[];
};

/** One push of a session's stream. */
export type FoundEntry = { seq: number; name: string; turnId?: string; messageId?: string; attempt?: number };

/** The stream of a session from its first entry; `from` is its start if some entries are no longer stored. */
export type FoundJournal = { sessionId: string; from: number; entries: FoundEntry[] };

export type Found = {
  /** The expected turns; a missing one was answered with 404. */
  turns: ReadonlyMap<string, FoundTurn>;
  events: ReadonlyMap<string, FoundEvent>;
  sessions: ReadonlyMap<string, FoundSession>;
  journals: readonly FoundJournal[];
};
