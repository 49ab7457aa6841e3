import { expect, test } from "vitest";
import { postgresTests, startPostgres } from "./postgres.ts";

await postgresTests(() => {
  test("a server that is started, stopped and restarted at once does one after the other, and ends after all", async () => {
    const server = await startPostgres();
    const seen: unknown[] = [];
    const look = async () => seen.push(await server.query("SELECT 1").catch((error) => error.code));
    const began = [server.restart("immediate", look), server.start(), server.stop(), server.restart("fast", look)];
    const ended = server[Symbol.asyncDispose]();
    await expect(server.start()).rejects.toThrow("ended for good");
    await Promise.all([...began, ended]);
    expect(seen).toEqual(["ECONNREFUSED", "ECONNREFUSED"]);
    expect(await server.pids()).toEqual([]);
  });
});
