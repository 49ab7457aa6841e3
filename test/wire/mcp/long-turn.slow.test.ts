import { resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { describe, expect, test } from "vitest";
import { freePort } from "#test/harness/ports.ts";
import { GatewayProcess, startProcess } from "#test/harness/process.ts";
import { connectClient, openTasks, type Result } from "./strangers.ts";

// A turn of 90 seconds, longer than clients wait for a call.

const KEY = "rest-key-of-long-turns";
const MESSAGE = "Good morning, what changed since yesterday?";
const LONG = { chunks: 30, delayMs: 3_000 };
const config = {
  gateway: { rest: { auth: { keys: [{ name: "tests", key: KEY }] } }, mcp: { enabled: true } },
  store: { type: "sqlite", path: "gateway.db" },
  agents: { main: { backend: "echo", echo: LONG } },
};

describe.concurrent("a turn of 90 s", () => {
  test("is a task that survives kill -9 and a restart", async ({ onTestFinished: onFinished }) => {
    const port = String(await freePort());
    const first = await startProcess({ config, args: ["--port", port], onFinished });
    await using _folder = first;
    const execution = await (await openTasks(first.url, KEY, onFinished)).callTool("ask_main", { message: MESSAGE });
    if (execution.kind !== "task") throw new Error("The call did not become a task.");
    const reference = execution.serializeReference();
    await execution.detach();
    first.kill("SIGKILL");
    await first.exited;

    await using second = new GatewayProcess({ cwd: first.folder, args: ["--port", port], onFinished });
    await second.until(() => second.url !== "");
    const resumed = await (await openTasks(second.url, KEY, onFinished)).resumeTask(reference);
    const { outcome } = await resumed.settle();
    const result = resultFromTaskOutcome(outcome) as unknown as Result;
    expect(result.content[0]?.text).toBe(MESSAGE);
    expect(result.structuredContent).toMatchObject({ status: "completed", reply: MESSAGE });
  });

  test.for(["http", "stdio"] as const)(
    "without tasks is answered within 55 s with its turn_id, and turn_get has the rest: %s",
    async (way, { onTestFinished: onFinished }) => {
      await using gateway = await startProcess({ config, onFinished });
      // The client's own limit of a call is 60 s.
      const client = await connectClient(gateway.url, KEY, "legacy", way, onFinished);
      const began = performance.now();
      const answer = (await client.callTool({ name: "ask_main", arguments: { message: MESSAGE } })) as Result;
      expect(performance.now() - began).toBeLessThan(55_000);
      expect(answer.structuredContent).toMatchObject({ status: "running" });
      expect(answer.content[0]?.text).toContain("turn_get");
      const args = { turn_id: answer.structuredContent?.turn_id, wait_seconds: 50 };
      const rest = (await client.callTool({ name: "turn_get", arguments: args })) as Result;
      expect(rest.structuredContent).toMatchObject({ status: "completed", reply: MESSAGE });
    },
  );
});
