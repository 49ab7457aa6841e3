import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { type GatewayProcess, startProcess } from "#test/harness/process.ts";

const KEY = "rest-key-of-loaded-modules";
/** Files that only the MCP server needs: its packages, and our chunk. */
const OF_MCP = /@modelcontextprotocol|\/chunks\/mcp-surface-/;

async function start(isOn: boolean) {
  const config = {
    gateway: { rest: { auth: { keys: [{ name: "tests", key: KEY }] } }, mcp: { enabled: isOn } },
    agents: { main: { backend: "echo" } },
  };
  return startProcess({ config, node: ["--inspect=127.0.0.1:0"] });
}

/** The files of all scripts that the process has loaded. */
async function loadedBy(gateway: GatewayProcess): Promise<string[]> {
  const url = await gateway.until(() => /ws:\/\/\S+/.exec(gateway.err.join("\n"))?.[0]);
  const inspector = new WebSocket(url);
  await once(inspector, "open");
  const files: string[] = [];
  // The scripts so far are reported before the answer.
  const answered = new Promise<void>((resolve) => {
    inspector.on("message", (data) => {
      const { id, method, params } = JSON.parse(String(data));
      if (method === "Debugger.scriptParsed") files.push(params.url);
      if (id === 1) resolve();
    });
  });
  inspector.send(JSON.stringify({ id: 1, method: "Debugger.enable" }));
  await answered;
  inspector.close();
  return files.filter((file) => file.startsWith("file:"));
}

async function post(gateway: GatewayProcess, path: string, body: object) {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${KEY}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}
const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };

test.each([true, false])("nothing of the MCP server is loaded before its first call; on: %s", async (isOn) => {
  await using gateway = await start(isOn);
  expect((await post(gateway, "/api/v1/chat/send", { message: "Hello" })).status).toBe(200);
  const before = await loadedBy(gateway);
  expect(before.length).toBeGreaterThan(10);
  expect(before.filter((file) => OF_MCP.test(file))).toEqual([]);
  const { status, text } = await post(gateway, "/mcp", LIST);
  expect([status, text.includes("ask_main")]).toEqual(isOn ? [200, true] : [404, false]);
  const after = (await loadedBy(gateway)).filter((file) => OF_MCP.test(file));
  expect(after.length > 0).toBe(isOn);
});
