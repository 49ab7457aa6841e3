import { join } from "node:path";
import { expect, test } from "vitest";
import { root, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

const node = ["--import", join(root, "test/harness/fail-on-signal.mjs")];
const env = { LOG_LEVEL: "debug" };

test("an uncaught error is logged completely, running work finishes, and the exit code is 1", async () => {
  await using gateway = await startProcess({ node, env, config: agentWith({ delayMs: 800 }) });
  const reply = createRest(gateway.url, key).call("chat.send", { body: { message: "slow" } });
  await gateway.logged("turn.started");
  gateway.kill("SIGUSR2");
  const logged = await gateway.logged("unexpected.error");
  expect(logged).toMatchObject({ level: "error", where: "uncaughtException" });
  expect(logged.error).toMatchObject({ message: "thrown where nobody catches" });
  expect((logged.error as { stack: string }).stack).toContain("fail-on-signal.mjs");
  await gateway.logged("draining");
  gateway.kill("SIGUSR2");
  await gateway.logged("unexpected.error", 2);
  expect(await reply).toMatchObject({ status: 200, json: { reply: "slow" } });
  expect(await gateway.exited).toEqual({ code: 1, signal: null });
  expect(gateway.records.filter(({ event }) => event === "draining")).toHaveLength(1);
  expect(gateway.err).toEqual([]);
});

test("an unhandled rejection is logged, and the gateway continues", async () => {
  await using gateway = await startProcess({ node, env, config: agentWith({}) });
  gateway.kill("SIGWINCH");
  const logged = await gateway.logged("unexpected.error");
  expect(logged).toMatchObject({ level: "error", where: "unhandledRejection" });
  expect(logged.error).toMatchObject({ message: "rejected where nobody looks" });
  const rest = createRest(gateway.url, key);
  expect(await rest.call("chat.send", { body: { message: "Hi" } })).toMatchObject({ json: { reply: "Hi" } });
  gateway.kill("SIGTERM");
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
});
