import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";

const run = promisify(execFile);

async function paste(line: string): Promise<string> {
  return (await run("bash", ["-c", line])).stdout;
}

test("a start without a configuration shows addresses, secrets, and curl lines that work when pasted", async () => {
  await using gateway = await startProcess();
  const { REST_API_KEY, RPC_TOKEN, WEBHOOK_TOKEN, CONSOLE_TOKEN } = gateway.secrets;
  const secrets = [REST_API_KEY, RPC_TOKEN, WEBHOOK_TOKEN, CONSOLE_TOKEN];
  expect(new Set(secrets).size).toBe(4);
  for (const secret of secrets) expect(secret).toMatch(/^[\w-]{32}$/);
  expect(gateway.out.join("\n")).toContain(`runs at ${gateway.url} `);

  expect(gateway.out).toContain(
    `No configuration was found: there is no gateway.json5 in ${realpathSync(gateway.folder)}.`,
  );
  expect(gateway.out).toContain(`  ${gateway.url}/docs`);
  expect(await (await fetch(`${gateway.url}/docs`)).text()).toContain("<!doctype html>");

  const curls = gateway.out.filter((line) => line.trimStart().startsWith("curl "));
  expect(curls).toHaveLength(3);
  const [rest = "", rpc = "", webhook = ""] = await Promise.all(curls.map(paste));
  expect(JSON.parse(rest)).toMatchObject({ status: "completed", reply: "Hello" });
  expect(JSON.parse(rpc)).toMatchObject({ id: "1", result: { status: "delivered", reply: "Hello" } });
  const started = JSON.parse(webhook) as { status: number; turnId: string };
  expect(started).toMatchObject({ status: 200, message: "turn started" });
  const headers = { authorization: `Bearer ${REST_API_KEY}` };
  const turn = async () => (await fetch(`${gateway.url}/api/v1/turns/${started.turnId}`, { headers })).json();
  await expect.poll(turn).toMatchObject({ status: "completed", reply: "Hello" });

  const log = gateway.out.filter((line) => line.startsWith("{")).join("\n");
  for (const secret of secrets) expect(log).not.toContain(secret);
  expect(gateway.err).toEqual([]);
});

test("a try-out on all addresses shows an address that can be called from this machine", async () => {
  await using gateway = await startProcess({ args: ["--host", "0.0.0.0"] });
  const { port } = new URL(gateway.url);
  const shown = await gateway.until(() => gateway.out.find((line) => line.startsWith("The gateway runs at ")));
  expect(shown).toContain(` http://127.0.0.1:${port} `);
  expect(gateway.out.join("\n")).toContain(`listens on all addresses of this machine (http://0.0.0.0:${port})`);
  const curl = gateway.out.find((line) => line.trimStart().startsWith("curl ")) ?? "";
  expect(JSON.parse(await paste(curl))).toMatchObject({ reply: "Hello" });
});
