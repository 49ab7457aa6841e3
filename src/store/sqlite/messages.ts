/** The messages between the two threads of the engine. */
import type { MessagePort } from "node:worker_threads";
import type { ErrorExtra, ErrorName } from "#kit/errors.ts";
import type { StorePolicy } from "#store/policy.ts";
import type { News } from "#store/rules/news.ts";
import type { Totals } from "#store/rules/records.ts";
import type { AgentCounts, StoreNotice } from "#store/store.ts";

/**
 * The order that a worker is started with. `now` and `time` are the store's clock, of which it has none; `offset` is how far the first was
 * ahead of the second when this process opened the file first. `isOurs`: it opens it again, and has claims in the store of this `epoch`.
 */
export type WorkerOrder = {
  path: string;
  now: number;
  time: number;
  offset: number;
  isOurs: boolean;
  epoch: string;
  policy: StorePolicy;
  port: MessagePort;
};

/** A method of the store, called at `now` by the wall clock and `time` by the monotonic one. */
export type Call = { id: number; name: string; now: number; time: number; args: readonly unknown[] };

/** The calls of one message. `isOutOfOrder`: all calls only read, and are sent before the previous message has been processed. */
export type CallOrder = { calls: Call[]; isOutOfOrder: boolean };

export type Refusal = { name: ErrorName; detail: string | undefined; extra: ErrorExtra };

/** The value or the refusal that answers the call of this id. `news` are the news that it caused. */
export type Answer = { id: number; value?: unknown; refusal?: Refusal; news?: readonly News[] };

/** Answers to calls in any order: one that is worked off in pieces is answered later. */
export type Answers = {
  kind: "answers";
  answers: Answer[];
  /** True if a message in order was processed: the next can be sent. */
  isFree: boolean;
  /** True if the disk syncs slowly: read-only calls can run during a sync. */
  isSlow: boolean;
  totals: Totals;
  /** The agents of which something has changed. */
  agents: [agent: string, counts: AgentCounts][];
};

export type FromWorker =
  | Answers
  | { kind: "opened"; epoch: string; totals: Totals; agents: [string, AgentCounts][]; notices: StoreNotice[] }
  /** Something happened while it was open. */
  | { kind: "noticed"; notice: StoreNotice }
  /** It does not open. An `OpenFailure` says why in a sentence. */
  | { kind: "refused"; error: unknown }
  /** The connection is not to be relied on: all that was not answered failed. */
  | { kind: "lost"; detail: string };

/** The free places of an agent: for messages, and for compactions. */
export type FreeOf = { other: number; compact: number };
