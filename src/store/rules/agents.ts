import type { AgentCounts, Turn, TurnEnd } from "#store/store.ts";
import { appendNews } from "./gateway.ts";
import { NO_SEQ } from "./journal.ts";
import { noteAgent } from "./notifications.ts";
import type { AgentCount, AgentRecord, BeatRecord, Counts, Records, Rule } from "./records.ts";

export const NOTHING_OPEN: Readonly<Counts> = {
  queued: 0,
  running: 0,
  compactions: 0,
  waitingEvents: 0,
  openEvents: 0,
  deadEvents: 0,
};
type OpenCount = "queued" | "running" | "compactions" | "waitingEvents";

function agentOf(records: Records, agent: string): AgentRecord {
  return records.agents.find(agent) ?? { agent, lastEndedAt: undefined, failing: false, pausedAt: undefined };
}

export function isPaused(records: Records, agent: string): boolean {
  return records.agents.find(agent)?.pausedAt !== undefined;
}

/** The counts of an agent, from its records. */
export function countsOf(count: AgentCount | undefined, agent?: AgentRecord, beat?: BeatRecord): AgentCounts {
  const { queued, grouped, running, compactions, waitingEvents } = count ?? NOTHING_OPEN;
  const { lastEndedAt, failing = false, pausedAt } = agent ?? {};
  const nextBeatAt = beat?.nextAt;
  const counts: AgentCounts = {
    queued,
    running,
    compactions,
    waitingEvents,
    nextBeatAt,
    lastEndedAt,
    failing,
    pausedAt,
  };
  if (grouped) counts.grouped = grouped;
  return counts;
}

/** True for an agent with turns or events that have not ended. */
export function hasOpenWork({ queued, running, compactions, waitingEvents }: Pick<Counts, OpenCount>): boolean {
  return queued + running + compactions + waitingEvents > 0;
}

/** Counts that a turn ends, which `turn` shows as it was before. */
export function countEndOfTurn(
  records: Records,
  turn: Turn,
  { now, status, error }: Pick<TurnEnd, "now" | "status" | "error">,
  hops = 0,
): void {
  const before = agentOf(records, turn.agent);
  const isRunning = turn.status === "running";
  const isBackendsFault = error?.name === "turn-failed" || error?.name === "turn-timeout";
  const failing = isRunning && (status === "completed" || isBackendsFault) ? status !== "completed" : before.failing;
  records.agents.put({ agent: before.agent, lastEndedAt: now, failing, pausedAt: before.pausedAt });
  records.agents.count(turn.agent, isRunning ? { running: -1 } : { queued: -1 });
  if (failing !== before.failing) noteAgent(records, turn, { now, error }, hops);
}

export const setPaused: Rule<"setPaused"> = (records, agent, { paused, now, streamKeep }) => {
  const before = agentOf(records, agent);
  if ((before.pausedAt !== undefined) === paused) return { pausedAt: before.pausedAt, isChanged: false };
  const pausedAt = paused ? now : undefined;
  records.agents.put({ ...before, pausedAt });
  const name = paused ? "agent.paused" : "agent.resumed";
  appendNews(records, [{ seq: NO_SEQ, at: now, name, agentName: agent }], streamKeep);
  if (!paused) {
    records.notify({ kind: "work", of: "turn" });
    records.notify({ kind: "work", of: "beat" });
  }
  return { pausedAt, isChanged: true };
};
