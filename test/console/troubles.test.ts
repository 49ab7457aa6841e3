import { describe, expect, it } from "vitest";
import { troublesOf } from "#console/lib/troubles.ts";

type Agents = Parameters<typeof troublesOf>[1];

function agent(more: Partial<Agents[number]>): Agents[number] {
  return {
    agentName: "main",
    description: "",
    backend: "echo",
    model: null,
    state: "idle",
    paused: false,
    pausedAt: null,
    running: 0,
    queued: 0,
    waitingEvents: 0,
    skills: [],
    heartbeat: { every: "30m", nextAt: null },
    lastTurnAt: null,
    ...more,
  };
}
function health(detail: string) {
  return {
    status: "ok" as const,
    parts: [{ name: "agents.main", status: "ok" as const, detail }],
    store: { type: "memory" as const, durable: false },
    nodeId: "node_1",
    uptimeMs: 1,
    version: "1",
  };
}

describe("what is wrong", () => {
  it.each([
    [{ queued: 1 }, "1 turn waits until it is resumed."],
    [{ waitingEvents: 2 }, "2 events wait until it is resumed."],
    [{ queued: 3, waitingEvents: 1 }, "3 turns and 1 event wait until it is resumed."],
  ])("names a paused agent that something waits for, once: %j", (waiting, detail) => {
    const paused = agent({ paused: true, ...waiting });
    const path = "/agents/main";
    expect(troublesOf(health("It is paused."), [paused])).toEqual([{ what: "The agent main is paused", detail, path }]);
  });

  it("names no paused agent that nothing waits for", () => {
    expect(troublesOf(health("It is paused."), [agent({ paused: true })])).toEqual([]);
  });

  it("names an agent both as paused and as failing", () => {
    const agents = [agent({ paused: true, queued: 1, state: "failing" })];
    expect(troublesOf(undefined, agents).map(({ what }) => what)).toEqual([
      "The agent main",
      "The agent main is paused",
    ]);
  });
});
