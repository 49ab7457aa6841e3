import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { leastOf } from "#test/harness/loop.ts";
import { root, startProcess } from "#test/harness/process.ts";
import { openSocket, type TestSocket } from "#test/wire/ws/socket.ts";

const isLong = process.env.RUN_LONG !== undefined;
/** RUN_LONG=1 opens what the gateway promises to hold; every run opens enough to see what one costs. */
const SOCKETS = isLong ? 10_000 : 2_000;
const PROCESSES = 2;
const FIRST = 1_000;
const KIB = 1024;
const token = "rpc-token-of-the-idle-sockets";

test(`${SOCKETS} idle sockets cost at most 10 KiB each, stay up, and leave calls beside them unharmed`, async () => {
  await using gateway = await startProcess({
    config: {
      agents: { main: { backend: "echo" } },
      gateway: { rpc: { auth: { tokens: [{ name: "ops", token: `\${RPC_TOKEN}`, permissions: "*" }] } } },
    },
    // A young generation that grows with the first burst would be weighed as the sockets'.
    env: { RPC_TOKEN: token, LOG_FORMAT: "json", NODE_OPTIONS: "--max-semi-space-size=1" },
  });
  const { port } = new URL(gateway.url);
  using socket = await openSocket({ url: gateway.url, rpcToken: token });
  // The first also pay for what is made once.
  await using _first = await openIdle(port, FIRST);
  await timeOf(socket);
  const alone = await timeOf(socket);
  const before = rssOf(gateway.pid);
  await using _many = await openIdle(port, SOCKETS);
  const each = (rssOf(gateway.pid) - before) / SOCKETS;
  const beside = await leastOf(3, alone * 3 + 1, () => timeOf(socket));
  console.log(
    `${SOCKETS} idle sockets: ${Math.round(each)} bytes each (RSS); a call's p50 ${alone.toFixed(3)} ms alone, ${beside.toFixed(3)} ms beside them`,
  );
  expect(each).toBeLessThan(10 * KIB);
  expect(beside).toBeLessThan(alone * 3 + 1);
  const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  expect(await metrics.text()).toContain(`\ngateway_sockets_open ${SOCKETS + FIRST + 1}\n`);
}, 120_000);

/** Opens so many from two processes; they end with the test. */
const openIdle = async (port: string, count: number): Promise<AsyncDisposable> => {
  const share = Math.ceil(count / PROCESSES);
  const script = join(root, "test/wire/ws/open-sockets.mjs");
  const children = Array.from({ length: PROCESSES }, (_, n) => {
    const mine = String(Math.min(share, count - n * share));
    return spawn(process.execPath, [script, port, token, mine], { stdio: ["ignore", "pipe", "inherit"] });
  });
  await Promise.all(children.map(untilOpen));
  return {
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit")));
    },
  };
};

const untilOpen = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.stdout?.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`the sockets' process ended with ${code}`)));
  });

/** The median of how long a call takes, in milliseconds. */
const timeOf = async (socket: TestSocket): Promise<number> => {
  const times: number[] = [];
  for (let n = 0; n < 300; n++) {
    const began = performance.now();
    await socket.call("agent.status", { agentName: "main" });
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[times.length >> 1] as number;
};

const rssOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * KIB;
