/** The parts of the configuration that the rules of the store need. */
import type { Period } from "#kit/windows.ts";
import type { Surface } from "./inbound.ts";

/** An endpoint of notifications. The addresses and secrets of endpoints are not part of the policy. */
export type NotifyRule = {
  name: string;
  /** The full names of its events. */
  events: readonly string[];
  /** The only agents whose events it gets; undefined for all events. */
  agents: readonly string[] | undefined;
};

/** A budget. It applies to the turns of `agents`, of the callers in `keys` and of `surfaces`; undefined for all. */
export type BudgetRule = {
  name: string;
  per: Period;
  timeZone: string;
  agents: readonly string[] | undefined;
  keys: readonly string[] | undefined;
  surfaces: readonly Surface[] | undefined;
  /** The most in a window; undefined for no limit. The cost is in billionths. */
  tokens: number | undefined;
  cost: number | undefined;
  /** The part of a limit at which an entry of the gateway's stream warns. */
  warnAt: number;
  then: "refuse" | "pause";
};

/** The most that a request to an agent may use: the tokens around its conversation, those of a reply, and the prices of a token in billionths. */
export type Reserve = { promptTokens: number; outputTokens: number; inputPrice: number; outputPrice: number };

export type StorePolicy = {
  notify: readonly NotifyRule[];
  /** The most stored notifications of an endpoint that have ended, and the most that wait. */
  notifications: number;
  budgets: readonly BudgetRule[];
  /** By agent. */
  reserves: Readonly<Record<string, Reserve>>;
  /** The number of entries that the gateway's stream keeps. */
  streamKeep: number;
};

/** The policy of a store until `configure` is called. */
export const NO_POLICY: StorePolicy = {
  notify: [],
  notifications: 10_000,
  budgets: [],
  reserves: {},
  streamKeep: 10_000,
};
