import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";

const MOST_MS = 300;
const KEY = "rest-key-of-the-first-call";

test("the first call of the MCP server, which loads it, is answered within 300 ms", async () => {
  const config = {
    gateway: { rest: { auth: { keys: [{ name: "tests", key: KEY }] } }, mcp: { enabled: true } },
    agents: { main: { backend: "echo" } },
  };
  const took: number[] = [];
  for (let start = 0; start < 5; start++) {
    await using gateway = await startProcess({ config });
    await expect.poll(async () => (await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    const began = performance.now();
    const response = await fetch(`${gateway.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${KEY}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "ask_main", arguments: { message: "Hello" } },
      }),
    });
    expect(await response.text()).toContain("Hello");
    took.push(performance.now() - began);
  }
  console.log(`The first call took ${took.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  expect(took.toSorted((one, other) => one - other)[2]).toBeLessThan(MOST_MS);
});
