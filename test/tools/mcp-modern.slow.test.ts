import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { heldClock, open, signal } from "./open-tools.ts";
import { answerOf, MODERN } from "./stand-in-answers.mjs";

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
  const { waits, clock } = heldClock();
  await using files = open({ type: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {} }, { clock });
  expect(await files.call("say", { text: "a" })).toBe("You said a.");
  expect(files.failures).toEqual([]);
  // Its time to start begins again with `initialize`.
  expect(waits.filter((ms) => ms === 10_000)).toHaveLength(2);
  server.closeAllConnections();
  server.close();
});

it("F06: MUST have its delay named as the reason if its first answer takes too long", { timeout: 30_000 }, async () => {
  const server = createServer(async (req, res) => {
    const message = JSON.parse(await text(req));
    if (message.method === "server/discover") return;
    const answer = JSON.stringify(answerOf(message, "good", MODERN));
    res.writeHead(200, { "content-type": "application/json" }).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await using files = open({ type: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {} });
  const { missing } = await files.source.tools(signal, 0);
  expect(missing).toEqual([{ server: "files", reason: "it did not answer in time" }]);
  server.closeAllConnections();
  server.close();
});
