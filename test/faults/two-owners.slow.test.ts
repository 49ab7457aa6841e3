import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runProcess } from "#test/harness/process.ts";
import { clientOf, startNodes } from "./nodes.ts";

const configOf = (folder: string) => ["--config", join(folder, "gateway-0/gateway.json")];

describe("F23: two processes", () => {
  test("on one file: the second is refused with a sentence, and the first goes on; after its end another may", async () => {
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
  }, 60_000);

  test("on one port: the second says so, and touches no store", async () => {
    await using fleet = await startNodes();
    const port = String(fleet.first.port);
    const config = { agents: { main: { backend: "echo" } }, store: { type: "sqlite", path: "other.db" } };
    const second = await runProcess({ config, args: ["--port", port] });
    expect(second.code).toBe(1);
    expect(second.err).toMatch(new RegExp(`${port}.*in use`));
    expect((await clientOf(fleet.first).wake({ text: "after" })).status).toBe(200);
  }, 60_000);
});

describe("F25: a file of another version", () => {
  test("that is newer is refused with a sentence, and left as it is", async () => {
    await using fleet = await startNodes();
    await fleet.first.kill("SIGTERM");
    const file = join(fleet.folder, "gateway.db");
    const version = setVersion(file, (own) => own + 1);
    const { code, err, out } = await runProcess({ args: configOf(fleet.folder) });
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(/^The store cannot be opened: .*gateway\.db.*newer.*\.$/m);
    expect(setVersion(file, (own) => own - 1)).toBe(version - 1);
    fleet.first.start();
    await fleet.first.up();
  }, 60_000);
});

/** Writes another version in a database's file; answers what it is then. */
const setVersion = (file: string, change: (version: number) => number): number => {
  const Database = createRequire(import.meta.url)("libsql") as new (path: string) => Opened;
  const database = new Database(file);
  const next = change(Number(database.prepare("PRAGMA user_version").get([]).user_version));
  database.exec(`PRAGMA user_version = ${next}`);
  database.close();
  return next;
};
type Opened = {
  prepare(sql: string): { get(values: unknown[]): Record<string, unknown> };
  exec(sql: string): void;
  close(): void;
};
