import { expect, test } from "vitest";
import type { Backend } from "#backends/backend.ts";
import { gatherDiagnostics } from "#cli/diagnostics.ts";
import { Gateway } from "#generated/clients/typescript/src/index.ts";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { checkedFetch } from "#test/harness/rest.ts";
import { startCollector } from "./collector.ts";

/** Reports a tool call and a part of a reply, then fails if the message contains "fail". */
const backend: Backend = {
  kind: "telling",
  models: undefined,
  async *run({ message }) {
    const content = { arguments: { query: "sentinel" }, result: "sentinel" };
    yield { note: { name: "tool.called", detail: { tool: "search", ok: true, ms: 1, ...content } } };
    yield { text: "sentinel reply" };
    if (message.text.includes("fail")) throw new Error("out of order");
  },
  summarise: async () => "",
};

test("diagnostics, traces, the log and the metrics contain no text of messages, replies or tool calls", async () => {
  await using collector = await startCollector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "10" };
  await using gateway = await startGateway({ env, makeBackend: () => backend });
  for (const message of ["sentinel", "sentinel fail"]) await gateway.rest.call("chat.send", { body: { message } });
  await gateway.hooks.wake({ text: "sentinel" });
  // Spans of several calls may come in one request.
  await expect.poll(() => new Set(collector.spans().map(({ traceId }) => traceId)).size).toBeGreaterThan(1);
  const { url } = gateway;
  const fetch = (target: string | URL | Request, init?: RequestInit) => checkedFetch(new Request(target, init));
  const client = new Gateway({ url, key: SECRETS.consoleToken, rpcToken: SECRETS.rpcToken, fetch });
  const address = { url, credentials: { rest: [], rpc: [] } };
  const signal = new AbortController().signal;
  const bundle = await gatherDiagnostics({ gateway: client, address, signal } as never);
  expect(bundle).toMatchObject({ failedTurns: { turns: [{ status: "failed" }] } });
  const told = JSON.stringify([bundle, collector.bodies(), gateway.logs]);
  expect(told).not.toContain("sentinel");
  expect(gateway.linesOf("turn.ended")).toHaveLength(2);
});
