/** What goes between the two threads of the engine. */
import type { MessagePort } from "node:worker_threads";
import type { ErrorExtra, ErrorName } from "#kit/errors.ts";
import type { News, Totals } from "#store/rules/records.ts";
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
  port: MessagePort;
};

/** A method of the store, called at `now` by the wall clock and `time` by the monotonic one. */
export type Call = { name: string; now: number; time: number; args: readonly unknown[] };

export type Refusal = { name: ErrorName; detail: string | undefined; extra: ErrorExtra };

/** A call has a value or a refusal; one that is worked off in pieces is answered later, by its ticket. `news` is what it caused. */
export type Answer = { value?: unknown; refusal?: Refusal; ticket?: number; news?: readonly News[] };

/** Answers to calls in the order in which these came, and to earlier ones. */
export type Answers = {
  kind: "answers";
  answers: Answer[];
  late: Answer[];
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
