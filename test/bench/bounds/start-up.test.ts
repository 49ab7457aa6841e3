import { readFileSync } from "node:fs";
import { request } from "node:http";
import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { agentWith, key } from "#test/process/configs.ts";

/** Asks once; resolves with the status, or 0 without a connection. A client that costs nothing to start. */
const ask = (url: string, method: string, headers: Record<string, string>, body = ""): Promise<number> =>
  new Promise((resolve) => {
    const asked = request(url, { method, headers, agent: false }, (reply) => {
      reply.resume().on("end", () => resolve(reply.statusCode ?? 0));
    });
    asked.on("error", () => resolve(0)).end(body);
  });

test("P13: it starts in no time, and what it needs idle is small", async () => {
  let [healthMs, restMs, residentMb] = [Infinity, Infinity, Infinity];
  for (let tries = 0; tries < 3 && (healthMs >= 2_000 || restMs >= 4_000); tries++)
    [healthMs, restMs, residentMb] = await startUp();
  console.log(
    `/healthz after ${healthMs.toFixed(0)} ms, REST after ${restMs.toFixed(0)} ms, ${residentMb.toFixed(0)} MB resident`,
  );
  expect(healthMs).toBeLessThan(2_000);
  expect(restMs).toBeLessThan(4_000);
  expect(residentMb).toBeLessThan(130);
});

const startUp = async (): Promise<[healthMs: number, restMs: number, residentMb: number]> => {
  const began = performance.now();
  await using gateway = await startProcess({ config: agentWith({}) });
  expect(await ask(`${gateway.url}/healthz`, "GET", {})).toBe(200);
  const healthMs = performance.now() - began;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  expect(await ask(`${gateway.url}/api/v1/chat/send`, "POST", headers, '{"message":"Hi"}')).toBe(200);
  const restMs = performance.now() - began;
  const status = readFileSync(`/proc/${gateway.pid}/status`, "utf8");
  return [healthMs, restMs, Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1_000];
};
