import { expect, it } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { startNodes, type TestNode } from "./nodes.ts";

await postgresTests((server) => {
  it("any gateway starts a beat for an event that another one has just queued, and each event is handled once", async () => {
    await using nodes = await startNodes(server, 2);
    const [here, there] = nodes.all as [TestNode, TestNode];
    const { json } = await there.hooks.wake({ text: "the disk is full" });
    const path = { agent_name: "main" };
    const beats = await Promise.all([0, 1, 2, 3].map((n) => nodes.at(n).console.call("agents.beat", { path })));
    expect(beats[0]?.json).toEqual({ agent_name: "main", outcome: "started", waiting_events: 1 });
    const read = () => here.console.call("events.get", { path: { event_id: String(json.eventId) } });
    await expect.poll(async () => (await read()).json.status).toBe("handled");
    expect((await here.gateway.store.getSession("agent:main:main"))?.messageCount).toBe(2);
    expect((await there.console.call("agents.beat", { path })).json.waiting_events).toBe(0);
  });
});
