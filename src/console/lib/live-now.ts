import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

type Agent = RpcMethods["agent.list"]["result"]["agents"][number];
type Part = RpcMethods["system.health"]["result"]["parts"][number];
type Push = { method: string; params: Record<string, unknown> };
type Pushed = { deliveryId: string; outcome: string; agent: string | null; turnId: string | null };

/** The current state of the gateway: read once, and updated by pushes. */
export type Now = {
  agents: readonly Agent[];
  parts: readonly Part[];
  /** The number of turns that the answering process started in each of the last 60 minutes, and the minute of the last number. */
  turns: readonly number[];
  minute: number;
  /** The last known outcomes, by delivery. */
  outcomes: ReadonlyMap<string, string>;
};

const MOST_OUTCOMES = 1_000;

export function minuteOf(at: number): number {
  return Math.floor(at / 60_000);
}

/** The turns of the 60 minutes up to this one. */
export function turnsUntil({ turns, minute }: Pick<Now, "turns" | "minute">, now: number): readonly number[] {
  const passed = Math.min(turns.length, Math.max(0, now - minute));
  return passed === 0 ? turns : [...turns.slice(passed), ...new Array<number>(passed).fill(0)];
}

/** The gateway after a push. */
export function nowAfter(now: Now, { method, params }: Push): Now {
  const named = params as { agentName?: string; nextAt?: string | null; parts?: Part[] };
  const withAgent = (change: (agent: Agent) => Partial<Agent>, name = named.agentName): Now => ({
    ...now,
    agents: now.agents.map((agent) => (agent.agentName === name ? { ...agent, ...change(agent) } : agent)),
  });
  switch (method) {
    case "delivery.recorded":
    case "delivery.changed":
      return afterDelivery(now, params.delivery as Pushed, method === "delivery.recorded");
    case "agent.paused":
      return withAgent(() => ({ paused: true }));
    case "agent.resumed":
      return withAgent(() => ({ paused: false }));
    case "event.queued":
      return withAgent(({ waitingEvents }) => ({ waitingEvents: waitingEvents + 1 }));
    case "event.handled":
      return withAgent(({ waitingEvents }) => ({ waitingEvents: Math.max(0, waitingEvents - 1) }));
    case "event.dead":
      return {
        ...withAgent(({ waitingEvents }) => ({ waitingEvents: Math.max(0, waitingEvents - 1) })),
        parts: withDead(now.parts),
      };
    case "heartbeat.ran":
      return withAgent(({ heartbeat }) => ({ heartbeat: { ...heartbeat, nextAt: named.nextAt ?? null } }));
    case "health.changed":
      return { ...now, parts: [...(named.parts ?? []), ...now.parts.filter(({ status }) => status === "ok")] };
    default:
      return now;
  }
}

/** A delivery's turn moves from the agent's queue to the running ones, and ends. */
function afterDelivery(now: Now, delivery: Pushed, isNew: boolean): Now {
  const { deliveryId, outcome, agent: name, turnId } = delivery;
  if (name === null || turnId === null || outcome === "repeated") return now;
  const before = now.outcomes.get(deliveryId) ?? (isNew ? undefined : outcome === "running" ? "queued" : "running");
  if (before === outcome) return now;
  const change = (of: "queued" | "running") => Number(outcome === of) - Number(before === of);
  const outcomes = new Map(now.outcomes).set(deliveryId, outcome);
  for (const oldest of outcomes.keys()) if (outcomes.size > MOST_OUTCOMES) outcomes.delete(oldest);
  const agents = now.agents.map((agent): Agent => {
    if (agent.agentName !== name) return agent;
    const running = Math.max(0, agent.running + change("running"));
    const isFailing = outcome === "failed" || (agent.state === "failing" && outcome !== "completed");
    const state = isFailing ? "failing" : running > 0 ? "busy" : "idle";
    return { ...agent, running, queued: Math.max(0, agent.queued + change("queued")), state };
  });
  return { ...now, agents, outcomes };
}

export const DEAD = /Dead events: (\d+)\.[^.]*(?:\.|$)/;

/** One more event failed for good. Health names their number, and does not report each. */
function withDead(parts: readonly Part[]): Part[] {
  const events = parts.find(({ name }) => name === "events") ?? { name: "events", status: "ok" as const, detail: null };
  const dead = Number(DEAD.exec(events.detail ?? "")?.[1] ?? 0) + 1;
  const detail = `${(events.detail ?? "").replace(DEAD, "").trim()} Dead events: ${dead}.`.trim();
  return [...parts.filter(({ name }) => name !== "events"), { ...events, detail }];
}
