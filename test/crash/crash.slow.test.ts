import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { main } from "#test/harness/process.ts";
import { createRandom } from "#test/harness/random.ts";
import { showBroken } from "./breaches.ts";
import { startEndpoint } from "./notified.ts";
import { killBeforeEvents } from "./proofs.ts";
import { type CrashOptions, type CrashReport, runCrash, type Seen } from "./run.ts";

/** The short form of `npm run test:crash`, with another seed each time, which is printed when a promise is broken. */
async function crash(options: Pick<CrashOptions, "store" | "kills"> & Partial<CrashOptions>) {
  const folder = mkdtempSync(join(tmpdir(), "gateway-crash-"));
  const seed = Math.floor(Math.random() * 1e6);
  // A busy machine may be slow to do some work of each kind.
  const goesOn = (round: number, seen: Seen) => round <= options.kills || Object.values(seen).includes(0);
  const report = await runCrash({ main, folder, gateways: 1, seed, lanes: 6, restMs: 15, goesOn, ...options });
  if (report.broken.length === 0) onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { ...report, shown: report.broken.length > 0 ? `seed ${seed}, ${folder}\n${showBroken(report.broken)}` : "" };
}

function expectAllSeen({ counts, turns, events, looks, pushed, resumed }: CrashReport): void {
  for (const count of [counts.acknowledged, counts.repeated, turns, events, looks, pushed, resumed])
    expect(count).toBeGreaterThan(0);
}

test("F01: killed at any moment on SQLite, it breaks no promise", async () => {
  const { shown, ...report } = await crash({ store: { type: "sqlite", path: "../gateway.db" }, kills: 3 });
  expect(shown).toBe("");
  expectAllSeen(report);
});

/** The short form of the proofs about notifications. */
async function crashNotified(options: Pick<CrashOptions, "store" | "gateways">) {
  await using endpoint = await startEndpoint();
  const rules = killBeforeEvents(endpoint, createRandom(Math.floor(Math.random() * 1e6)));
  const { shown } = await crash({ kills: 3, ...rules, ...options });
  return { shown, ...endpoint.counts() };
}

test("a gateway on SQLite that is killed between a turn's end and its event sends one event id for each end", async () => {
  const { shown, turns } = await crashNotified({ store: { type: "sqlite", path: "../gateway.db" }, gateways: 1 });
  expect(shown).toBe("");
  expect(turns).toBeGreaterThan(0);
});

await postgresTests((server) => {
  test("three gateways on one database, killed between a turn's end and its event, notify every end with one id", async () => {
    const store = { type: "postgres", url: await server.createDatabase() };
    const { shown, turns } = await crashNotified({ store, gateways: 3 });
    expect(shown).toBe("");
    expect(turns).toBeGreaterThan(0);
  });

  test("F01: three gateways on one database, killed at any moment, break no promise", async () => {
    const store = { type: "postgres", url: await server.createDatabase() };
    const { shown, ...report } = await crash({ store, kills: 2, gateways: 3, lastBlow: false });
    expect(shown).toBe("");
    expectAllSeen(report);
  });
});

test("on a store that is not durable, every reader finds the same loss", async () => {
  const { broken, counts } = await crash({ store: { type: "memory" }, kills: 2 });
  expect(counts.acknowledged).toBeGreaterThan(0);
  const promises = new Set(broken.map(({ promise }) => promise));
  for (const promise of [
    "every acknowledged id exists",
    "no state moves backwards",
    "a stream continues where it ended",
  ])
    expect(promises).toContain(promise);
});
