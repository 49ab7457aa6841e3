import { createRequire } from "node:module";
import type { OpenrpcDocument } from "@open-rpc/meta-schema";
import type { Call, IOptions } from "@open-rpc/test-coverage/build/coverage.js";
import { describe, expect, test } from "vitest";
import openrpc from "#generated/openrpc.json" with { type: "json" };
import { startProcess } from "#test/harness/process.ts";

// OpenRPC's own test tool: it reads the served document, sends the examples of every method in their order, and validates the results. No method is
// skipped, also not one that changes the state: the gateway belongs to this test, and a later example needs the session of an earlier one.

const require = createRequire(import.meta.url);
const coverage: (options: IOptions) => Promise<Call[]> = require("@open-rpc/test-coverage/build/coverage.js").default;
/** The tool's own reader knows only OpenRPC 1.2. */
const { parseOpenRPCDocument }: { parseOpenRPCDocument: (url: string) => Promise<OpenrpcDocument> } = createRequire(
  require.resolve("@open-rpc/server-js"),
)("@open-rpc/schema-utils-js");

const token = "an-rpc-token-of-these-tests";
/** The gateway of the examples: one agent and one schedule. */
const config = {
  gateway: { rpc: { auth: { tokens: [{ name: "ops", token, permissions: "*" }] } } },
  agents: { main: { backend: "echo", description: "Repeats each message." } },
  schedules: { brief: { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", message: "Write the brief of the day." } },
};

async function send(url: string, method: string, params: unknown) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: method, method, params });
  return (await fetch(url, { method: "POST", headers, body })).json();
}

describe("@open-rpc/test-coverage on a running gateway", () => {
  test("gets a valid result for every example of every method of the served document", async () => {
    await using gateway = await startProcess({ config });
    const document = await parseOpenRPCDocument(`${gateway.url}/openrpc.json`);
    const calls = await coverage({ openrpcDocument: document, transport: send, skip: [], only: [], reporters: [] });
    const failed = calls.filter(({ valid }) => valid !== true);
    expect(failed.map(({ methodName, title, reason }) => [methodName, title, reason])).toEqual([]);
    // The tool reads the params of an example by their position.
    const sent = calls.map(({ methodName, params }) => [methodName, params]);
    const described = openrpc.methods.flatMap(({ name, examples }) =>
      examples.map(({ params }) => [name, Object.fromEntries(params.map((param) => [param.name, param.value]))]),
    );
    expect(sent).toEqual(described);
  });
});
