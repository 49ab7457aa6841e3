import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type GatewayProcess, startProcess } from "#test/harness/process.ts";

// On Node 20 a literal that starts with a spread and then has named fields gives each object its own hidden classes. One with an accessor becomes a
// dictionary. Such objects are slow to create and to use.

const folder = mkdtempSync(join(tmpdir(), "hidden-classes-"));
const log = join(folder, "maps.log");
let gateway: GatewayProcess;
beforeAll(async () => {
  const node = ["--log-maps", `--logfile=${log}`, "--no-logfile-per-isolate"];
  gateway = await startProcess({ config, node, onFinished: () => {} });
  return async () => {
    await gateway[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  };
});

/** A hidden class that is not shared, and an object that became a dictionary because of an accessor. */
const MADE = /^map,(?:Transition,.*,prototype,(?!symbol)|NormalizeCached,.*,Accessors)/gm;
const CALLS = 200;
const key = "rest-key-of-hidden-classes";
const token = "rpc-token-of-hidden-classes";
const secret = "hook-token-of-hidden-classes";
const config = {
  agents: { main: { backend: "echo" } },
  gateway: {
    openai: { enabled: true },
    rest: { auth: { keys: [{ name: "tests", key }] } },
    rpc: { auth: { tokens: [{ name: "tests", token, permissions: ["*"] }] } },
  },
  webhooks: { token: secret, rateLimit: { maxRequests: 0 } },
};
const message = { role: "user", content: "Hello" };
const send = { jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: { agentName: "main", message: "Hello" } };

test.each([
  ["chat.send", "/api/v1/chat/send", key, { message: "Hello" }],
  ["a stream of chat.send", "/api/v1/chat/send", key, { message: "Hello", stream: true }],
  ["completions.create", "/v1/chat/completions", key, { model: "main", messages: [message] }],
  ["a stream of completions.create", "/v1/chat/completions", key, { model: "main", messages: [message], stream: true }],
  ["agent.sendMessage", "/rpc", token, send],
  ["hooks.wake", "/hooks/wake", secret, { text: "Hello" }],
  ["hooks.agent", "/hooks/agent", secret, { message: "Hello" }],
])("%s creates no hidden classes after many calls", async (_, path, bearer, body) => {
  const call = async (): Promise<void> => {
    for (let n = 0; n < CALLS; n++) {
      const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
      const answer = await fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) });
      expect([answer.status, (await answer.text()) !== ""]).toEqual([200, true]);
    }
  };
  // Transitions to symbols are those of Node's own signals.
  const made = (): number => readFileSync(log, "latin1").match(MADE)?.length ?? 0;
  await call();
  const before = made();
  await call();
  expect(made() - before).toBeLessThan(CALLS / 2);
});
