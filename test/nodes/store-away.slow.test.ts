import { expect, it } from "vitest";
import { createDoor } from "#test/harness/database-door.ts";
import { postgresTests, startPostgres } from "#test/harness/postgres.ts";
import { createRest } from "#test/harness/rest.ts";
import { startNodes, type TestNode } from "./nodes.ts";

const readyOf = async ({ url }: TestNode) => createRest(url, "").call("ops.readyz", { key: null });

await postgresTests((server) => {
  it("a gateway whose database goes away says so, refuses work in time, and goes on by itself when it is back", async () => {
    await using server = await startPostgres();
    await using nodes = await startNodes(server, 2);
    const [first, second] = nodes.all as [TestNode, TestNode];
    const kept = await first.hooks.agent({ message: "before" });
    const turn_id = String(kept.json.turnId);
    const statusOf = async ({ rest }: TestNode) => (await rest.call("turns.get", { path: { turn_id } })).json.status;
    await expect.poll(() => statusOf(second)).toBe("completed");

    await server.stop("immediate");
    for (const node of nodes.all) {
      const refused = await Promise.all([
        node.hooks.wake({ text: "x" }),
        node.rest.call("chat.send", { body: { message: "x" } }),
        node.rest.call("turns.get", { path: { turn_id } }),
      ]);
      expect(refused.map(({ status, error }) => [status, error])).toEqual(Array(3).fill([503, "store-unavailable"]));
      for (const { headers } of refused) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await node.rest.call("ops.healthz", { key: null })).toMatchObject({ status: 200 });
      expect(await readyOf(node)).toMatchObject({
        status: 503,
        json: { ready: false, parts: { store: { ok: false } } },
      });
      const { result } = await node.rpc.call("system.health");
      expect(result).toMatchObject({ status: "degraded", store: { type: "postgres", durable: true } });
      expect(result.parts.find(({ name }) => name === "store")).toMatchObject({ status: "degraded" });
      await node.logged("store.unavailable");
    }

    await server.start();
    for (const node of nodes.all) {
      await expect.poll(async () => (await readyOf(node)).status, { timeout: 10_000 }).toBe(200);
      await node.logged("store.available");
      expect(await statusOf(node)).toBe("completed");
      expect(await node.rest.call("chat.send", { body: { message: "after" } })).toMatchObject({
        json: { reply: "after" },
      });
    }
  });

  it("a gateway that starts while its database is coming and going waits for it, and knows every key then", async () => {
    const url = await server.createSchema();
    await using nodes = await startNodes(server, 1, { url });
    const [first] = nodes.all as [TestNode];
    const { key } = (await first.console.call("keys.create", { body: { name: "shared" } })).json;
    using door = await createDoor(url);
    door.set("one");
    const starting = startNodes(server, 1, { url: door.url });
    // What listens has its connection, and what asks for the keys has none, until both go.
    await expect.poll(door.refused).toBeGreaterThan(2);
    door.set("open");
    await using others = await starting;
    const { rest } = others.all[0] as TestNode;
    expect((await rest.call("skills.list", { key: String(key) })).status).toBe(200);
  });
});
