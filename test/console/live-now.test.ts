import { describe, expect, it } from "vitest";
import { type Now, nowAfter, turnsUntil } from "#console/lib/live-now.ts";
import { agent } from "./agent.ts";

const EMPTY: Now = { agents: [agent()], parts: [], turns: [0, 0, 0], minute: 10, outcomes: new Map() };

function pushed(now: Now, method: string, params: Record<string, unknown>): Now {
  return nowAfter(now, { method, params });
}
function delivery(now: Now, method: string, deliveryId: string, outcome: string, more = {}): Now {
  const given = { deliveryId, outcome, agent: "main", turnId: `turn_${deliveryId}`, ...more };
  return pushed(now, `delivery.${method}`, { delivery: given });
}
function shown({ agents }: Now) {
  const [{ running, queued, state } = agent()] = agents;
  return `${queued} ${running} ${state}`;
}

describe("the current numbers of the gateway", () => {
  it("MUST count a turn once while it is queued, runs and ends", () => {
    let now = delivery(EMPTY, "recorded", "a", "queued");
    expect(shown(now)).toBe("1 0 idle");
    now = delivery(now, "changed", "a", "running");
    expect(shown(now)).toBe("0 1 busy");
    now = delivery(now, "changed", "a", "running");
    now = delivery(now, "recorded", "b", "running");
    expect(shown(now)).toBe("0 2 busy");
    now = delivery(now, "changed", "b", "failed");
    expect(shown(now)).toBe("0 1 failing");
    now = delivery(now, "changed", "a", "completed");
    expect(shown(now)).toBe("0 0 idle");
  });

  it("MUST count an earlier turn in the state that it had, and never count below zero", () => {
    const before = { ...EMPTY, agents: [agent({ running: 1, queued: 1, state: "busy" })] };
    let now = delivery(before, "changed", "old", "running");
    expect(shown(now)).toBe("0 2 busy");
    now = delivery(now, "changed", "other", "completed");
    now = delivery(now, "changed", "old", "cancelled");
    now = delivery(now, "changed", "third", "completed");
    expect(shown(now)).toBe("0 0 idle");
  });

  it("MUST ignore a request that started no turn, and one of an unknown agent", () => {
    for (const more of [{ turnId: null }, { agent: null }, { agent: "gone" }]) {
      const { agents } = delivery(EMPTY, "recorded", "x", "queued", more);
      expect(agents).toEqual(EMPTY.agents);
    }
    expect(shown(delivery(EMPTY, "recorded", "x", "repeated"))).toBe("0 0 idle");
  });

  it("MUST follow the events, heartbeats and pauses of an agent", () => {
    let now = pushed(EMPTY, "event.queued", { agentName: "main", eventId: "e" });
    now = pushed(now, "event.queued", { agentName: "main", eventId: "f" });
    now = pushed(now, "agent.paused", { agentName: "main" });
    expect(now.agents[0]).toMatchObject({ waitingEvents: 2, paused: true });
    now = pushed(now, "agent.resumed", { agentName: "main" });
    now = pushed(now, "event.handled", { agentName: "main", eventId: "e" });
    now = pushed(now, "event.dead", { agentName: "main", eventId: "f", attempts: 3, reason: "away" });
    expect(now.parts).toEqual([{ name: "events", status: "ok", detail: "Dead events: 1." }]);
    now = pushed(now, "event.dead", { agentName: "main", eventId: "g", attempts: 3, reason: "away" });
    expect(now.parts).toMatchObject([{ detail: "Dead events: 2." }]);
    const nextAt = "2026-11-21T08:00:00.000Z";
    now = pushed(now, "heartbeat.ran", { agentName: "main", turnIds: ["turn_1", "turn_2"], nextAt });
    expect(now.agents[0]).toMatchObject({ waitingEvents: 0, paused: false, heartbeat: { every: "30m", nextAt } });
    // Pushes are from all gateways on the same database; the turns are those of one.
    expect(now.turns).toBe(EMPTY.turns);
  });

  it("MUST replace the degraded parts of a gateway, and leave those of others", () => {
    const parts: Now["parts"] = [
      { name: "store", status: "degraded", detail: "It is full." },
      { name: "rest.keys", status: "ok", detail: "ci expires soon." },
    ];
    const wrong = { name: "agents.main", status: "degraded" as const, detail: "It failed." };
    const now = pushed({ ...EMPTY, parts }, "health.changed", { status: "degraded", parts: [wrong] });
    expect(now.parts).toEqual([wrong, parts[1]]);
  });

  it("MUST be the same after an unknown push", () => {
    expect(pushed(EMPTY, "something.new", {})).toBe(EMPTY);
  });
});

it("the turns of an hour move on with the minutes", () => {
  const now = { turns: [1, 2, 3], minute: 10 };
  expect(turnsUntil(now, 10)).toEqual([1, 2, 3]);
  expect(turnsUntil(now, 12)).toEqual([3, 0, 0]);
  expect(turnsUntil(now, 99)).toEqual([0, 0, 0]);
  expect(turnsUntil(now, 8)).toEqual([1, 2, 3]);
});
