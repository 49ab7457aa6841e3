import { expect, it } from "vitest";
import { createDoor } from "#test/harness/database-door.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { startNodes, type TestNode } from "./nodes.ts";

await postgresTests((server) => {
  it("a gateway whose database is unstable during the start waits for it, and then knows every key", async () => {
    const url = await server.createSchema();
    await using nodes = await startNodes(server, 1, { url });
    const [first] = nodes.all as [TestNode];
    const { key } = (await first.console.call("keys.create", { body: { name: "shared" } })).json;
    using door = await createDoor(url);
    door.set("one");
    const starting = startNodes(server, 1, { url: door.url });
    // The listener has its connection, and the reader of keys has none, until both are dropped.
    await expect.poll(door.refused).toBeGreaterThan(2);
    door.set("open");
    await using others = await starting;
    const { rest } = others.all[0] as TestNode;
    expect((await rest.call("skills.list", { key: String(key) })).status).toBe(200);
  });
});
