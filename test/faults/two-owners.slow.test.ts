import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runProcess } from "#test/harness/process.ts";
import { clientOf, startNodes } from "./nodes.ts";

function configOf(folder: string) {
  return ["--config", join(folder, "gateway-0/gateway.json")];
}

describe("F23: two processes", () => {
  test("on one file: the second is refused with an error message, and the first continues; after its end another may start", async () => {
    await using fleet = await startNodes();
    const { first, folder } = fleet;
    const client = clientOf(first);
    const { eventId } = (await client.wake({ text: "before" })).json;
    const second = await runProcess({ args: configOf(folder) });
    expect([second.code, second.out]).toEqual([1, ""]);
    expect(second.err).toMatch(/^The store cannot be opened: .*gateway\.db.*\.$/m);
    expect((await client.wake({ text: "after" })).status).toBe(200);
    await first.kill();
    first.start();
    await first.up();
    expect(await client.event(eventId as string)).toMatchObject({ text: "before" });
  });

  test("on one port: the second reports it, and opens no store", async () => {
    await using fleet = await startNodes();
    const port = String(fleet.first.port);
    const config = { agents: { main: { backend: "echo" } }, store: { type: "sqlite", path: "other.db" } };
    const second = await runProcess({ config, args: ["--port", port] });
    expect(second.code).toBe(1);
    expect(second.err).toMatch(new RegExp(`${port}.*in use`));
    expect((await clientOf(fleet.first).wake({ text: "after" })).status).toBe(200);
  });
});
