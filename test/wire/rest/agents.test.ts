import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";

const EVENT = { text: "The build is green." };
function beat({ console }: TestGateway, agent_name = "main") {
  return console.call("agents.beat", { path: { agent_name } });
}

describe("agents.beat", () => {
  test("starts a beat for the waiting events long before it is due", async () => {
    await using alone = await startGateway();
    const { json } = await alone.hooks.wake(EVENT);
    const started = { agent_name: "main", outcome: "started", waiting_events: 1 };
    expect((await beat(alone)).json).toEqual(started);
    await alone.logged("beat.ran");
    const { json: event } = await alone.console.call("events.get", { path: { event_id: String(json.eventId) } });
    expect(event.status).toBe("handled");
  });

  test("plans the next beat as usual afterwards", async () => {
    await using alone = await startGateway();
    await alone.hooks.wake(EVENT);
    await beat(alone);
    await alone.logged("beat.ran");
    await alone.hooks.wake(EVENT);
    const nextAt = alone.gateway.store.agentCounts("main").nextBeatAt ?? 0;
    expect(nextAt).toBeGreaterThan(Date.now() + 20 * 60_000);
  });

  test("starts nothing if no event waits", async () => {
    await using alone = await startGateway();
    const before = alone.gateway.store.agentCounts("main").nextBeatAt;
    expect((await beat(alone)).json).toEqual({ agent_name: "main", outcome: "nothing-waiting", waiting_events: 0 });
    expect(alone.gateway.store.agentCounts("main").nextBeatAt).toBe(before);
  });

  test("starts nothing while a beat runs, and later events wait for the next", async () => {
    const puppet = createPuppet();
    await using slow = await startGateway({ makeBackend: () => puppet.backend });
    await slow.hooks.wake({ ...EVENT, mode: "now" });
    await puppet.next();
    await slow.hooks.wake(EVENT);
    expect((await beat(slow)).json).toEqual({ agent_name: "main", outcome: "running", waiting_events: 1 });
  });

  test("handles an event that waited when the heartbeat was switched off", async () => {
    await using off = await startGateway();
    const { json } = await off.hooks.wake(EVENT);
    await off.reload({ agents: { main: { backend: "echo", heartbeat: { every: "off" } } } });
    expect((await beat(off)).json).toMatchObject({ outcome: "started", waiting_events: 1 });
    const read = () => off.console.call("events.get", { path: { event_id: String(json.eventId) } });
    await expect.poll(async () => (await read()).json.status).toBe("handled");
    expect((await beat(off)).json).toMatchObject({ outcome: "nothing-waiting" });
  });

  test("handles each event once if it is called many times at once", async () => {
    await using alone = await startGateway();
    await alone.hooks.wake(EVENT);
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => beat(alone)));
    expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 200));
    await alone.logged("beat.ran");
    const { json } = await alone.console.call("events.list", { query: { status: "handled" } });
    expect(json.events).toHaveLength(1);
    const main = await alone.gateway.store.getSession("agent:main:main");
    expect(main?.messageCount).toBe(2);
  });
});
