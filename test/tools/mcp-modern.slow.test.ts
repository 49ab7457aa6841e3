import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { open } from "./open-tools.ts";
import { answerOf } from "./stand-in-answers.mjs";

it("F06: MUST start with a server that never answers a request that it does not know", {
  timeout: 30_000,
}, async () => {
  const server = createServer(async (req, res) => {
    if (req.method !== "POST") return void res.writeHead(405).end();
    const message = JSON.parse(await text(req));
    if (message.method === "server/discover") return;
    if (message.id === undefined) return void res.writeHead(202).end();
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answerOf(message, "good")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await using files = open({ type: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {} });
  expect(await files.call("say", { text: "a" })).toBe("You said a.");
  expect(files.failures).toEqual([]);
  server.closeAllConnections();
  server.close();
});
