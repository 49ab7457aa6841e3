/** The records of agents, and the counts of their turns and events. */
import type { AgentCounts } from "#store/store.ts";

/** The state of an agent, except its counts. */
export type AgentRecord = { readonly agent: string } & Pick<AgentCounts, "lastEndedAt" | "failing" | "pausedAt">;

/**
 * The counts of an agent, or of all agents together: its turns, and its events that wait for a turn, that have not ended, and that are dead. `grouped`: the
 * queued turns whose group of webhooks is open; undefined until the first one.
 */
export type Counts = Record<
  "queued" | "running" | "compactions" | "waitingEvents" | "openEvents" | "deadEvents",
  number
> & { grouped?: number };
export type CountChange = Partial<Counts>;
export type AgentCount = { readonly agent: string } & Counts;
