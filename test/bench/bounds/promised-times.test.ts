import { expect, test } from "vitest";
import { gatewayWith, sendToDeaf } from "#test/backends/programs-agents.ts";
import { untilGone } from "#test/backends/stand-ins/programs.ts";
import { clientOf, linesOf, startNodes, until } from "#test/faults/nodes.ts";
import { leastOf } from "#test/harness/loop.ts";
import { postgresTests, startPostgres } from "#test/harness/postgres.ts";
import { startProcess } from "#test/harness/process.ts";

async function timeOf(act: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await act();
  return performance.now() - began;
}
const agents = { slow: { backend: "echo", heartbeat: { every: "1h" }, echo: { delayMs: 2_000, chunks: 4 } } };

test("F09: a cancelled turn reaches its program within 100 ms", async () => {
  await using gateway = await gatewayWith(["waiting"]);
  const cancel = async () => {
    const { pids, turnId } = await sendToDeaf(gateway, "waiting");
    return await timeOf(async () => {
      await gateway.rest.call("turns.cancel", { path: { turn_id: turnId } });
      await untilGone(pids);
    });
  };
  expect(await leastOf(15, 100, cancel)).toBeLessThan(100);
});

test("F22: an idle gateway ends within 1.5 s after SIGTERM", async () => {
  const end = async () => {
    await using gateway = await startProcess();
    return await timeOf(async () => {
      gateway.kill("SIGTERM");
      await gateway.exited;
    });
  };
  expect(await leastOf(3, 1_500, end)).toBeLessThan(1_500);
});

test("F01: a turn continues within 3 s after the gateway was killed and started again", async () => {
  await using fleet = await startNodes({ agents });
  const { first } = fleet;
  await clientOf(first).agent({ agent: "slow", message: "x" });
  await until(() => linesOf(first, "turn.started")[0]);
  await first.kill();
  first.start();
  const resumed = await until(() => linesOf(first, "turn.started", { attempt: 2 })[0]);
  const restarted = linesOf(first, "listening")[1];
  expect(Date.parse(resumed.time) - Date.parse(restarted?.time ?? "")).toBeLessThan(3_000);
});

await postgresTests((server) => {
  test("F30: a turn is taken over within 15 s after its gateway was killed", async () => {
    const store = { type: "postgres", url: await server.createSchema() };
    await using fleet = await startNodes({ count: 2, agents, store });
    const { first, second } = fleet;
    const { json } = await clientOf(first).agent({ agent: "slow", message: "x" });
    const { turnId } = json;
    await until(() => linesOf(first, "turn.started", { turnId })[0]);
    await first.kill();
    expect(await timeOf(() => until(() => linesOf(second, "turn.started", { turnId })[0]))).toBeLessThan(15_000);
  });

  test("F04: work is refused within 1 s while the database is away", async () => {
    await using database = await startPostgres();
    await using fleet = await startNodes({ agents, store: { type: "postgres", url: database.url() } });
    const client = clientOf(fleet.first);
    await until(async () => (await client.wake({ text: "before" })).status === 200);
    await database.stop("immediate");
    for (let round = 0; round < 3; round++) {
      const refuse = async () => expect((await client.wake({ text: "x" })).status).toBe(503);
      expect(await timeOf(() => Promise.all(Array.from({ length: 40 }, refuse)))).toBeLessThan(1_000);
    }
  });
});
