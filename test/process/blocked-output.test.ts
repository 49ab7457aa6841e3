import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "#test/harness/ports.ts";
import { main } from "#test/harness/process.ts";
import { createRest, type Rest } from "#test/harness/rest.ts";
import { agentWith, key, opsToken } from "./configs.ts";
import { readExposition, readSeries } from "./exposition.ts";

/** The gateway with its log in a pipe, as a shell or a supervisor creates it, without a reader. */
async function startUnread() {
  const folder = mkdtempSync(join(tmpdir(), "gateway-unread-"));
  const path = join(folder, "log");
  execFileSync("mkfifo", [path]);
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  writeFileSync(join(folder, "gateway.json5"), JSON.stringify(agentWith({})));
  const port = await freePort();
  const env = { PATH: process.env.PATH ?? "", LOG_LEVEL: "debug" };
  const stdio = ["ignore", writeEnd, "inherit"] as const;
  const child = spawn(process.execPath, [main, "--port", String(port)], { cwd: folder, env, stdio: [...stdio] });
  closeSync(writeEnd);
  onTestFinished(() => {
    child.kill("SIGKILL");
    closeSync(readEnd);
    rmSync(folder, { recursive: true });
  });
  const rest = createRest(`http://127.0.0.1:${port}`, key);
  await expect
    .poll(() =>
      rest.call("ops.readyz", { key: null }).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(200);
  return { child, rest };
}

/** Sends messages, a few at a time, until lines were dropped. */
async function sendUntilDropped(rest: Rest): Promise<void> {
  while ((await droppedLines(rest)) === 0) {
    const sent = Array.from({ length: 100 }, async (_, n) => {
      const { status } = await rest.call("chat.send", { body: { message: "Hi", session_id: `s${n % 10}` } });
      expect(status).toBe(200);
    });
    await Promise.all(sent);
  }
}

async function droppedLines(rest: Rest): Promise<number> {
  const { text } = await rest.call("ops.metrics", { key: opsToken });
  return readSeries(readExposition(text), "gateway_log_lines_dropped_total");
}

test("F26: without a reader of its log it serves as usual, counts dropped lines, and stops on a signal", async () => {
  const { child, rest } = await startUnread();
  await sendUntilDropped(rest);
  expect((await rest.call("ops.healthz", { key: null })).status).toBe(200);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});
