import type { AgentCounts, Turn, TurnEnd } from "#store/store.ts";
import { appendNews } from "./gateway.ts";
import { NO_SEQ } from "./journal.ts";
import type { AgentRecord, Records, Rule } from "./records.ts";

function agentOf(records: Records, agent: string): AgentRecord {
  return records.agents.find(agent) ?? { agent, lastEndedAt: undefined, failing: false, pausedAt: undefined };
}

export function isPaused(records: Records, agent: string): boolean {
  return records.agents.find(agent)?.pausedAt !== undefined;
}

export function countsOf(records: Records, agent: string): AgentCounts {
  const { lastEndedAt, failing, pausedAt } = agentOf(records, agent);
  const nextBeatAt = records.beats.find(agent)?.nextAt;
  const { queued, running, compactions, waitingEvents } = records.agents.counts(agent);
  return { queued, running, compactions, waitingEvents, nextBeatAt, lastEndedAt, failing, pausedAt };
}

/** Counts that a turn ends, which `turn` shows as it was before. */
export function countEndOfTurn(
  records: Records,
  turn: Turn,
  { now, status, error }: Pick<TurnEnd, "now" | "status" | "error">,
): void {
  const before = agentOf(records, turn.agent);
  const isRunning = turn.status === "running";
  const isBackendsFault = error?.name === "turn-failed" || error?.name === "turn-timeout";
  const failing = isRunning && (status === "completed" || isBackendsFault) ? status !== "completed" : before.failing;
  records.agents.put({ agent: before.agent, lastEndedAt: now, failing, pausedAt: before.pausedAt });
  records.agents.count(turn.agent, isRunning ? { running: -1 } : { queued: -1 });
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
