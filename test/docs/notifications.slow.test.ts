import { spawn } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { freePort } from "#test/harness/ports.ts";
import { root, startProcess } from "#test/harness/process.ts";
import { pythons } from "#test/sdk/python.ts";
import { blocksOf } from "./blocks.ts";

const blocks = blocksOf("docs/notifications.md");
function blockOf(name: string): string {
  return blocks.find((block) => block.name === name)?.text ?? "";
}
const [, python = ""] = pythons[0] ?? [];
const env = {
  NOTIFY_SECRET: `whsec_${Buffer.from("the secret of the page").toString("base64")}`,
  REST_API_KEY: "a-rest-key-of-the-page",
};

/** Runs a receiver of the page until the end of the test; returns its lines. */
async function startReceiver(program: string, file: string, port: number): Promise<AsyncIterator<string>> {
  const child = spawn(program, [file], { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill());
  while (!(await listens(port))) await new Promise((done) => setTimeout(done, 50));
  return createInterface({ input: child.stdout })[Symbol.asyncIterator]();
}
function listens(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const socket = createConnection(port, "127.0.0.1", () => {
      socket.destroy();
      answer(true);
    });
    socket.once("error", () => answer(false));
  });
}

it("shows a configuration and receivers in Node and Python that work together", { timeout: 60_000 }, async () => {
  const [node, other] = [await freePort(), await freePort()];
  const config = blockOf("gateway.json5")
    .replace('"turn.failed", "alert.*"', '"turn.completed"')
    .replace("9000", String(node))
    .replace("9001", String(other));
  await using gateway = await startProcess({ config, env });
  symlinkSync(join(root, "node_modules"), join(gateway.folder, "node_modules"));
  const write = (name: string, port: number): string => {
    const file = join(gateway.folder, name);
    writeFileSync(file, blockOf(name).replace(/900[01]/, String(port)));
    return file;
  };
  const lines = await Promise.all([
    startReceiver(process.execPath, write("receiver.mjs", node), node),
    startReceiver(python, write("receiver.py", other), other),
  ]);

  const forged = { "webhook-id": "ntf_1", "webhook-timestamp": String(Math.floor(Date.now() / 1_000)) };
  const headers = { ...forged, "webhook-signature": "v1,Zm9yZ2Vk" };
  for (const port of [node, other])
    expect((await fetch(`http://127.0.0.1:${port}/events`, { method: "POST", headers, body: "{}" })).status).toBe(401);

  const sent = await fetch(`${gateway.url}/api/v1/chat/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${env.REST_API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ message: "Good morning" }),
  });
  const { turn_id } = (await sent.json()) as { turn_id: string };
  const id = turn_id.replace("turn_", "ntf_");
  for (const each of lines) expect((await each.next()).value).toBe(`${id} turn.completed ${turn_id}`);
});
