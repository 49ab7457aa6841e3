import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { startNodes } from "./nodes.ts";

type StoreConfig = NonNullable<SomeConfig["store"]>;

const LEFT = { name: "agent-removed", detail: "the agent parting was removed from the configuration" };

/** A gateway whose agent `parting`, if it has one, never answers; it runs one turn at a time. */
async function startWith(store: StoreConfig, names: readonly string[]) {
  const puppet = createPuppet();
  const of = { backend: "echo", concurrency: 1, heartbeat: { every: "1h" } } as const;
  const gateway = await startGateway({
    config: {
      store,
      gateway: { defaultAgent: "main" },
      agents: Object.fromEntries(names.map((name) => [name, of])),
    },
    makeBackend: (name, agent) => (name === "parting" ? puppet.backend : createEchoBackend(agent.echo)),
  });
  return { ...gateway, rpc: createRpc(gateway.url), next: puppet.next };
}

/** A running turn, one behind it, one of another session, and an event; then the gateway stops. */
async function leaveWork(store: StoreConfig) {
  await using gateway = await startWith(store, ["main", "parting"]);
  const send = async (sessionId: string) => {
    const params = { agentName: "parting", message: "wait", sessionId };
    return (await gateway.rpc.call("agent.sendMessage", params)).result.turnId as string;
  };
  const turnIds = [await send("first")];
  await gateway.next();
  turnIds.push(await send("first"), await send("second"));
  const { json } = await gateway.hooks.wake({ text: "for nobody", agent: "parting" });
  await gateway.gateway.drain("test", 0);
  return { turnIds, eventId: String(json.eventId) };
}

function restarts(storeOf: () => Promise<StoreConfig>) {
  it("fails at the next start: turns fail, events are dead, sessions can still be read", async () => {
    const store = await storeOf();
    const { turnIds, eventId } = await leaveWork(store);
    await using gateway = await startWith(store, ["main"]);
    for (const turn_id of turnIds) {
      const { json } = await gateway.rest.call("turns.get", { path: { turn_id } });
      expect(json).toMatchObject({ status: "failed", error: LEFT });
    }
    const event = await gateway.console.call("events.get", { path: { event_id: eventId } });
    expect(event.json).toMatchObject({ status: "dead", reason: LEFT.detail });
    const listed = await gateway.rpc.call("session.list", { agentName: "parting" });
    expect(listed.result.sessions.map(({ sessionId }) => sessionId).sort()).toEqual(["first", "second"]);
    const { result } = await gateway.rpc.call("session.get", { sessionId: "first" });
    expect(result.messages.map(({ text }) => text)).toEqual(["wait", "wait"]);
    expect(gateway.linesOf("turns.given-up")).toMatchObject([{ agent: "parting", count: 3 }]);
    expect(gateway.linesOf("events.given-up")).toMatchObject([{ agent: "parting", count: 1 }]);
  });

  it("continues if the agent is configured again at the next start", async () => {
    const store = await storeOf();
    const { turnIds } = await leaveWork(store);
    await using gateway = await startWith(store, ["main", "parting"]);
    const statuses = async () =>
      await Promise.all(turnIds.map(async (turnId) => (await gateway.gateway.store.getTurn(turnId))?.status));
    for (const _ of turnIds) (await gateway.next()).end();
    await expect.poll(statuses).toEqual(["completed", "completed", "completed"]);
  });
}

describe("the work in a file for an agent that was removed while no gateway ran", () => {
  restarts(async () => {
    const folder = mkdtempSync(join(tmpdir(), "gateway-removed-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return { type: "sqlite", path: join(folder, "gateway.db") };
  });
});

await postgresTests((server) => {
  describe("the work in a database for an agent that was removed while no gateway ran", () => {
    restarts(async () => ({ type: "postgres", url: await server.createSchema() }));
  });

  describe("the work for an agent that only some gateways have", () => {
    const NEW = { main: { backend: "echo" } } as const;
    const OLD = { ...NEW, live: { backend: "echo", concurrency: 1 } } as const;

    it("waits for these gateways, whichever others start and reload, and fails with the last of them", async () => {
      await using nodes = await startNodes(server, 1, { config: { agents: OLD } });
      const [old] = nodes.all as [(typeof nodes.all)[0]];
      const running = await old.fill();
      const { result } = await old.rpc.call("agent.sendMessage", {
        agentName: "live",
        message: "wait",
        sessionId: "filled-0",
      });
      const store: StoreConfig = { type: "postgres", url: nodes.url };
      await using next = await startWith(store, ["main"]);
      const statusOf = async () => (await next.gateway.store.getTurn(result.turnId))?.status;
      await next.reload({ store, agents: { main: { backend: "echo", description: "another" } } });
      expect(await statusOf()).toBe("queued");
      running.end();
      (await old.next()).end();
      await expect.poll(statusOf).toBe("completed");

      const last = await old.rpc.call("agent.sendMessage", { agentName: "live", message: "wait", sessionId: "stays" });
      await old.next();
      await old.gateway.drain("test", 0);
      const end = async () => (await next.gateway.store.getTurn(last.result.turnId))?.error?.name;
      await expect.poll(end).toBe("agent-removed");
    });

    it("fails with the last gateway that loads a configuration without the agent", async () => {
      await using nodes = await startNodes(server, 2, { config: { agents: OLD } });
      const [one, two] = nodes.all as [(typeof nodes.all)[0], (typeof nodes.all)[0]];
      await Promise.all([one.fill(), two.fill()]);
      const { result } = await one.rpc.call("agent.sendMessage", {
        agentName: "live",
        message: "wait",
        sessionId: "waits",
      });
      const turn = async () => await two.gateway.store.getTurn(result.turnId);
      const without = {
        store: { type: "postgres", url: nodes.url },
        gateway: { defaultAgent: "main" },
        agents: NEW,
      } as const;
      await one.reload(without);
      expect((await turn())?.status).toBe("queued");
      await two.reload(without);
      expect(await turn()).toMatchObject({ status: "failed", error: { name: "agent-removed" } });
    });
  });
});
