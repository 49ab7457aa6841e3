/** The records of agents, and the counts of their turns and events. */
import type { AgentCounts } from "#store/store.ts";

/** The state of an agent, except its counts. */
export type AgentRecord = { readonly agent: string } & Pick<AgentCounts, "lastEndedAt" | "failing" | "pausedAt">;

/** The changes of an agent's counts: its turns, and its events that wait for a turn, that have not ended, and that are dead. */
export type CountChange = Partial<
  Record<"queued" | "running" | "compactions" | "waitingEvents" | "openEvents" | "deadEvents", number>
>;

/** Counts of an agent, or of all agents together. */
export type Counts = Required<CountChange>;
export type AgentCount = { readonly agent: string } & Counts;
