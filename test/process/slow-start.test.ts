import { join } from "node:path";
import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { agentWith } from "./configs.ts";

test("a start that stood still for a while is ready when its doors are open, and not a while later", async () => {
  const node = ["--import", join(import.meta.dirname, "stand-still.mjs")];
  await using gateway = await startProcess({ node, config: agentWith({}) });
  expect(await gateway.until(() => gateway.err.find((line) => / still| open /.test(line)))).toBe("it stood still");
  const readiness = async () => {
    const answer = await fetch(`${gateway.url}/readyz`);
    return (await answer.json()) as { ready: boolean; parts: Record<string, { ok: boolean }> };
  };
  // One that serves and stands still is not ready for 15 s.
  await expect.poll(readiness, { timeout: 8_000 }).toMatchObject({ ready: true });
});
