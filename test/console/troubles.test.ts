import { describe, expect, it } from "vitest";
import type { Now } from "#console/lib/live-now.ts";
import type { Work } from "#console/lib/live-stream.ts";
import { causeOfWork, troublesOf } from "#console/lib/troubles.ts";
import { agent } from "./agent.ts";

function troubles(parts: Now["parts"], agents: Now["agents"] = [], reason?: string) {
  return troublesOf({ agents, parts }, () => reason).map(
    ({ subject, words, path, isBad }) => `${isBad ? "✕" : "▲"} ${subject} | ${words} | ${path}`,
  );
}
function degraded(name: string, detail: string | null) {
  return { name, status: "degraded" as const, detail };
}
function ok(name: string, detail: string | null) {
  return { name, status: "ok" as const, detail };
}

describe("the troubles of the gateway", () => {
  it.each([
    [{ queued: 1 }, "1 turn"],
    [{ waitingEvents: 2 }, "2 events"],
    [{ queued: 3, waitingEvents: 1 }, "3 turns and 1 event"],
  ])("include a paused agent with waiting work, once: %j", (waiting, what) => {
    const paused = agent({ paused: true, ...waiting });
    expect(troubles([ok("agents.main", "It is paused.")], [paused])).toEqual([
      `▲ main | paused, ${what} waiting | /agents/main`,
    ]);
  });

  it("do not include a paused agent without waiting work", () => {
    expect(troubles([ok("agents.main", "It is paused.")], [agent({ paused: true })])).toEqual([]);
  });

  it("include a failing agent once, with the reason of its last failure, and link to its failed requests", () => {
    const failing = agent({ agentName: "a b", state: "failing" });
    const path = "/activity?agent=a%20b&outcome=failed";
    const wrong = degraded("agents.a b", "The backend failed in the last turn.");
    expect(troubles([wrong], [failing], "503: it is away")).toEqual([
      `✕ a b | last turn failed: 503: it is away | ${path}`,
    ]);
    expect(troubles([wrong], [failing])).toEqual([`✕ a b | the backend failed in the last turn | ${path}`]);
    expect(troubles([], [failing])).toEqual([`✕ a b | degraded | ${path}`]);
  });

  it("link from a channel to the replies that were not delivered", () => {
    expect(troubles([degraded("channels.dead", "Last delivery failed: HTTP 410. 1 reply is waiting.")])).toEqual([
      "✕ dead | last delivery failed: HTTP 410. 1 reply is waiting | /activity?announcement=failed&channel=dead",
    ]);
  });

  it("link from an endpoint that is stopped or failing to its notifications", () => {
    const stopped = "Stopped: the receiver answered HTTP 410. 2 notifications are waiting.";
    expect(
      troubles([degraded("notify.ops", stopped), degraded("notify.a.b", "Last delivery failed: HTTP 503.")]),
    ).toEqual([
      "✕ Endpoint ops | stopped: the receiver answered HTTP 410. 2 notifications are waiting | /webhooks?tab=notifications&endpoint=ops",
      "✕ Endpoint a.b | last delivery failed: HTTP 503 | /webhooks?tab=notifications&endpoint=a.b",
    ]);
  });

  it("include the number of dead events, with a link to their list", () => {
    const detail = "Dead events: 2. List and replay them with GET /api/v1/events?status=dead.";
    expect(troubles([ok("events", detail)])).toEqual([
      "✕ Events | 2 events failed after all attempts | /events?status=dead",
    ]);
  });

  it("are in the order of severity, and all other parts have their names", () => {
    expect(troubles([ok("rest.keys", "ci expires on 2026-12-01."), degraded("store", null)])).toEqual([
      "✕ Store | degraded | /settings/configuration",
      "▲ API keys | ci expires on 2026-12-01 | /settings",
    ]);
    expect(troubles([ok("store", null), ok("queue", null)])).toEqual([]);
  });
});

describe("the reason of a failing agent", () => {
  const work = (outcome: string, detail: string | null = null, name = "main") =>
    ({ agent: name, outcome, error: detail === null ? null : { name: "turn-failed", detail } }) as Work;

  it("is the error of its newest work, unless that has completed", () => {
    const failed = work("failed", "the agent's service answered 503: it is away.");
    expect(causeOfWork([work("running"), work("failed", "x", "other"), failed], "main")).toBe("503: it is away");
    expect(causeOfWork([work("completed"), failed], "main")).toBeUndefined();
    expect(causeOfWork([work("failed")], "main")).toBeUndefined();
    expect(causeOfWork([], "main")).toBeUndefined();
  });
});
