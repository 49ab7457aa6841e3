import { expect, it } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { startNodes, type TestNode } from "./nodes.ts";

await postgresTests((server) => {
  it("any gateway lists the turns of all, whichever runs them", async () => {
    await using nodes = await startNodes(server, 2);
    const [here, there] = nodes.all as [TestNode, TestNode];
    const played = await there.fill();
    const ids = async (status: string) => {
      const { json } = await here.console.call("turns.list", { query: { status, agent: "live" } });
      return (json.turns as { turn_id: string }[]).map(({ turn_id }) => turn_id);
    };
    expect([await ids("running"), await ids("queued")]).toEqual([[played.turn.turnId], []]);
    played.end();
    await expect.poll(() => ids("completed")).toEqual([played.turn.turnId]);
  });

  it("any gateway makes an agent beat for an event that another one has just queued, and each is handed over once", async () => {
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

  it("an agent that is paused at one gateway starts nothing at any, one that starts later included, until any resumes it", async () => {
    await using nodes = await startNodes(server, 2);
    const [here, there] = nodes.all as [TestNode, TestNode];
    const path = { agent_name: "main" };
    await here.console.call("agents.pause", { path });
    const { json } = await there.hooks.agent({ message: "Deploy." });
    await there.hooks.wake({ text: "the disk is full", mode: "now" });
    const later = await nodes.start();
    const waiting = () => later.gateway.store.agentCounts("main");
    await expect.poll(waiting).toMatchObject({ queued: 1, running: 0, waitingEvents: 1 });
    const status = async () =>
      (await here.rest.call("turns.get", { path: { turn_id: String(json.turnId) } })).json.status;
    expect(await status()).toBe("queued");
    await expect
      .poll(async () => (await there.rpc.call("agent.status", { agentName: "main" })).result?.paused)
      .toBe(true);
    await there.console.call("agents.resume", { path });
    await expect.poll(status).toBe("completed");
    await expect.poll(waiting).toMatchObject({ queued: 0, running: 0, waitingEvents: 0, pausedAt: undefined });
  });
});
