import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { root } from "#test/harness/process.ts";
import { exchange } from "#test/harness/raw.ts";

/** RUN_LONG=1 uses the gateway's default times. */
const long = { idle: 10_000, slow: 1_000, requestMs: undefined, headMs: 10_000, bodyMs: 30_000, everyMs: 1_000 };
const short = { idle: 2_000, slow: 200, requestMs: 2_000, headMs: 2_000, bodyMs: 2_000, everyMs: 250 };
const options = process.env.RUN_LONG === undefined ? short : long;

test(`F11: slow heads and bodies end in time; next to them and ${options.idle} idle sockets new clients are answered`, async () => {
  await using gateway = await startGateway({ requestMs: options.requestMs });
  const idle = await begin(gateway, "idle", options.idle);
  const slow = await Promise.all(
    (["silent", "head", "body"] as const).map((kind) => begin(gateway, kind, options.slow)),
  );
  for (let n = 0; n < 20; n++)
    expect((await exchange(gateway.url, { method: "GET", path: "/healthz" })).status).toBe(200);

  const [silent, head, body] = await Promise.all(slow.map(({ told }) => told()));
  for (const [end, dueMs] of [
    [silent, options.headMs],
    [head, options.headMs],
    [body, options.bodyMs],
  ] as const)
    expect(end?.first).toBeGreaterThan(dueMs * 0.9);
  expect([silent, head, body].map((end) => end?.answers.length)).toEqual([0, options.slow, options.slow]);
  for (const { status } of [...(head?.answers ?? []), ...(body?.answers ?? [])]) expect(status).toBe(408);
  // A client that was answered and is idle is not a slow one.
  idle.child.kill("SIGUSR2");
  expect(await idle.told()).toEqual({ closed: 0 });
}, 120_000);

type End = { first: number; closed: number; answers: { status: number; requestId: string }[] };

async function begin({ url, rpcToken }: TestGateway, kind: string, count: number) {
  const script = join(root, "test/wire/http/slow-requests.mjs");
  const args = [new URL(url).port, rpcToken, kind, String(count), String(options.everyMs)];
  const child: ChildProcess = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess["stdout"]> });
  const next = async () => {
    const end = JSON.parse(String((await once(lines, "line"))[0])) as End;
    for (const { requestId } of end.answers ?? []) noteChecked(requestId);
    return end;
  };
  expect((await next()).closed).toBe(0);
  // Awaited from the start, because it may end before the others are checked.
  const end = kind === "idle" ? undefined : next();
  return { child, told: () => end ?? next() };
}
