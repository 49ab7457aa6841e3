/** What goes between the two threads of the engine. */
import type { MessagePort } from "node:worker_threads";
import type { ErrorExtra, ErrorName } from "#kit/errors.ts";
import type { AgentCounts, Entry, SessionRef, StoreNotice } from "#store/store.ts";
import type { KeptNews } from "./gateway-codec.ts";

/**
 * What the worker is started with. `now` and `time` are the store's clock, of which it has none; `offset` is how far the first was ahead
 * of the second when this process opened the file first. `isOurs`: it opens it again, and has claims in the store of this `epoch`.
 */
export type WorkerOrder = {
  path: string;
  now: number;
  time: number;
  offset: number;
  isOurs: boolean;
  epoch: string;
  port: MessagePort;
};

/** Calls that were made in one turn of the event loop, one after the other: the name, the store's monotonic time, the arguments. */
export type Calls = unknown[];
export const CALL_WIDTH = 3;

/** What watchers are told; `at` is the call that caused it, by its place among those that are answered with it. */
export type News = { at: number } & (
  | { kind: "entries"; session: SessionRef; entries: Entry[] }
  | { kind: "deleted"; session: SessionRef; end: { seq: number; at: number } }
  | { kind: "gateway"; first: number; news: readonly KeptNews[] }
  | { kind: "cancel"; turnId: string }
  | { kind: "compaction"; compactionId: string }
  | { kind: "work" | "beat" | "announcement" }
);

export type Refusal = { name: ErrorName; detail: string | undefined; extra: ErrorExtra };

/** The counts of `stats()`, of which the main side keeps a copy. */
export type Totals = {
  sessions: number;
  turnsQueued: number;
  turnsRunning: number;
  eventsQueued: number;
  eventsDead: number;
  announcements: number;
  /** Of all but the recorder. */
  bytes: number;
  deliveryBytes: number;
  /** Of these, what counts for `limits.storeBytes` all the same. */
  deliveryExcess: number;
  deliveries: number;
};

/** Answers to calls in the order in which these came. A call that is worked off in slices is answered later, by its ticket. */
export type Answers = {
  kind: "answers";
  values: unknown[];
  refusals: { at: number; refusal: Refusal }[];
  parked: { at: number; ticket: number }[];
  late: { ticket: number; value: unknown; refusal: Refusal | undefined }[];
  news: News[];
  totals: Totals | undefined;
  agents: [agent: string, counts: AgentCounts][];
};

export type FromWorker =
  | Answers
  | { kind: "opened"; epoch: string; totals: Totals; agents: [string, AgentCounts][]; notices: StoreNotice[] }
  /** What happened to it while it was open. */
  | { kind: "noticed"; notice: StoreNotice }
  /** It does not open. An `OpenFailure` says why in a sentence. */
  | { kind: "refused"; error: unknown }
  /** The connection is not to be relied on: all that was not answered failed. */
  | { kind: "lost"; detail: string };

export const NO_TOTALS: Totals = {
  sessions: 0,
  turnsQueued: 0,
  turnsRunning: 0,
  eventsQueued: 0,
  eventsDead: 0,
  announcements: 0,
  bytes: 0,
  deliveryBytes: 0,
  deliveryExcess: 0,
  deliveries: 0,
};
