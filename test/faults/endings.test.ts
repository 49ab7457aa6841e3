import { expect, it } from "vitest";
import { ask, MIB, openAgent } from "#outbound/ask.ts";
import { startRaw } from "#test/backends/stand-ins/raw-server.ts";
import { reset } from "./endings.ts";
import { endingsSuite } from "./endings-suite.ts";

await endingsSuite(5);

it("an answer without a length whose connection is reset is not complete", async () => {
  await using raw = await startRaw();
  raw.say({ bytes: "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nhalf" });
  const agent = openAgent(1_000);
  const answer = await ask(agent, "it", { origin: raw.url, path: "/", method: "GET", headers: {} }, undefined);
  expect(String(await answer.next(MIB))).toBe("half");
  for (const socket of raw.sockets) reset(socket);
  await expect(answer.next(MIB)).rejects.toThrow("it ended its answer early");
  await agent.close();
});
