import { expect, it } from "vitest";
import { usedOf } from "#tools/mcp/used.ts";

const numbers = Array.from({ length: 90_000 }, () => 0);
const fields = Object.fromEntries(numbers.map((value, n) => [`field-${n}`, value]));
const hostile = {
  capabilities: { tools: { listChanged: true, ...fields }, experimental: fields, extensions: fields },
  serverInfo: { name: "a", version: "1", icons: numbers },
  supportedVersions: numbers,
};
const used = {
  capabilities: { tools: { listChanged: true } },
  serverInfo: { name: "a", version: "1" },
  supportedVersions: numbers.slice(0, 100),
};

it.each([
  ["`initialize`", { protocolVersion: "2025-11-25" }],
  ["`server/discover`", { resultType: "complete", ttlMs: 0, cacheScope: "private" }],
  ["either, with a list of tools", { tools: [], ttlMs: 0, cacheScope: "private" }],
  ["either, with content", { content: [] }],
])("F35: MUST have only the used fields of an answer to %s checked", (_, own) => {
  const message = usedOf({ jsonrpc: "2.0", id: 1, result: { ...own, ...hostile } });
  expect(message).toEqual({ jsonrpc: "2.0", id: 1, result: { ...own, ...used } });
});

it("leaves out `tools` if a server has none", () => {
  const message = usedOf({ jsonrpc: "2.0", id: 1, result: { capabilities: { experimental: fields } } });
  expect(message).toEqual({ jsonrpc: "2.0", id: 1, result: { capabilities: {} } });
});
