import { describe, expect, it } from "vitest";
import { endpointIn, endpointsOf, exampleEndpoint, healthOf, nextReadInMs } from "#console/lib/notifications.ts";
import type { ConfigValue, Notification } from "#generated/clients/typescript/src/rest-types.ts";

function values(pairs: Record<string, ConfigValue["value"]>): ConfigValue[] {
  return Object.entries(pairs).map(([path, value]) => ({
    path,
    value,
    origin: "file",
    line: 1,
    column: 1,
    variable: null,
  }));
}

describe("the endpoints of the configuration", () => {
  it("have their events, agents and content, and not their secrets", () => {
    const found = endpointsOf(
      values({
        "channels.ops.url": "https://example.com",
        "notify.ops.url": "https://example.com/in",
        "notify.ops.secret": "[hidden]",
        "notify.ops.events.0": "turn.failed",
        "notify.ops.events.1": "alert.*",
        "notify.ops.content": "none",
        "notify.a.b.url": "https://example.com/b",
        "notify.a.b.events.0": "*",
        "notify.a.b.agents.0": "billing",
        "notify.a.b.content": "reply",
        "limits.notifications": 10,
      }),
    );
    expect(found).toEqual([
      { name: "ops", url: "https://example.com/in", events: ["turn.failed", "alert.*"], agents: [], hasReplies: false },
      { name: "a.b", url: "https://example.com/b", events: ["*"], agents: ["billing"], hasReplies: true },
    ]);
    expect(endpointsOf(values({ notify: {} }))).toEqual([]);
  });
});

describe("the health of an endpoint", () => {
  const health = (status: string, detail: string | null) => healthOf([{ name: "notify.ops", status, detail }], "ops");

  it("is ok without a part, and with one that is ok", () => {
    expect(healthOf([], "ops")).toEqual({ state: "ok", reason: "", waiting: 0 });
    expect(health("ok", null)).toEqual({ state: "ok", reason: "", waiting: 0 });
  });

  it("is failing or stopped, with the reason and the number of waiting notifications", () => {
    expect(health("degraded", "Last delivery failed: HTTP 503. 1 notification is waiting.")).toEqual({
      state: "failing",
      reason: "HTTP 503",
      waiting: 1,
    });
    expect(
      health("degraded", "Stopped: the receiver answered HTTP 410: no such hook. 12 notifications are waiting."),
    ).toEqual({ state: "stopped", reason: "HTTP 410: no such hook", waiting: 12 });
    expect(health("degraded", "Last delivery failed: no answer within 15 s.")).toMatchObject({
      state: "failing",
      reason: "no answer within 15 s",
      waiting: 0,
    });
  });
});

describe("the id of a notification", () => {
  it("ends with its endpoint, which may have dots", () => {
    expect(endpointIn("ntf_01M7YN0XEMM1B7E5S8YF3GKP2N_expiring.my.ops")).toBe("my.ops");
  });
});

describe("the time until the next read", () => {
  const NOW = Date.parse("2026-11-29T12:00:00Z");
  const at = (ms: number) => new Date(NOW + ms).toISOString();
  const read = (...all: Partial<Notification>[]) =>
    nextReadInMs(
      all.map((one) => ({ created_at: at(0), ended_at: null, next_attempt_at: null, ...one }) as Notification),
      NOW,
    );

  it("is undefined if all have ended", () => {
    expect(read()).toBeUndefined();
    expect(read({ ended_at: at(-1) })).toBeUndefined();
  });

  it("grows with the age of one that waits, and follows the next attempt of one that is retried", () => {
    expect(read({})).toBe(1_000);
    expect(read({ created_at: at(-40_000) })).toBe(10_000);
    expect(read({ created_at: at(-86_400_000) })).toBe(30_000);
    expect(read({ created_at: at(-86_400_000), next_attempt_at: at(5_000) })).toBe(6_000);
    expect(read({ created_at: at(-8_000), next_attempt_at: at(-1) })).toBe(2_000);
    expect(read({ created_at: at(-86_400_000) }, { next_attempt_at: at(3_600_000) })).toBe(30_000);
  });
});

describe("the example of an endpoint", () => {
  it("is an entry of a JSON5 object, or a YAML document", () => {
    expect(exampleEndpoint(false)).toMatch(/^notify: \{\n[\s\S]*\n\},$/);
    expect(exampleEndpoint(true)).toMatch(/^notify:\n {2}ops:\n/);
    for (const isYaml of [true, false]) expect(exampleEndpoint(isYaml)).toContain("$" + "{NOTIFY_SECRET}");
  });
});
