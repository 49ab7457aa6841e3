import { join } from "node:path";
import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { agentWith, key } from "./configs.ts";

test("a start that was blocked for a while is ready as soon as its listeners are open", async () => {
  const node = ["--import", join(import.meta.dirname, "stand-still.mjs")];
  await using gateway = await startProcess({ node, config: agentWith({}) });
  expect(await gateway.until(() => gateway.err.find((line) => / still| open /.test(line)))).toBe("it stood still");
  const readiness = async () => {
    const answer = await fetch(`${gateway.url}/readyz`);
    return (await answer.json()) as { ready: boolean; parts: Record<string, { ok: boolean }> };
  };
  // A serving gateway that was blocked is not ready for 15 s.
  await expect.poll(readiness, { timeout: 8_000 }).toMatchObject({ ready: true });
});

test("a frequent operation is answered before the REST contract is compiled, and others wait for it", async () => {
  const node = ["--import", join(import.meta.dirname, "late-contract.mjs")];
  const env = { CONTRACT_LATER_MS: "4000" };
  await using gateway = await startProcess({ node, env, config: agentWith({}) });
  const send = (body: string) =>
    fetch(`${gateway.url}/api/v1/chat/send`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body,
    });
  const isOpen = async () => {
    const answer = await fetch(`${gateway.url}/readyz`);
    const { parts } = (await answer.json()) as { parts: Record<string, { ok: boolean }> };
    return parts.rest?.ok;
  };
  const refused = send('{"message":1}').then(async ({ status }) => ({ status, isOpen: await isOpen() }));
  const { status } = await send('{"message":"hello"}');
  expect({ status, isOpen: await isOpen() }).toEqual({ status: 200, isOpen: false });
  expect(await refused).toEqual({ status: 400, isOpen: true });
});
