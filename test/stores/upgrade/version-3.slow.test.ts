import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPath, openSqlite } from "../sqlite-engine.ts";
import { LEASE_MS, openWorld, sweepOrder } from "../world.ts";
import { allAnswers } from "./all-answers.ts";
import { makeOldFile } from "./old-sqlite.ts";

/** The answers of version 3, by the names of `allAnswers`. */
const answersOfVersion3 = (): unknown => {
  const lines = readFileSync(join(import.meta.dirname, "version-3/answers.jsonl"), "utf8")
    .trimEnd()
    .split("\n");
  return Object.fromEntries(lines.map((line) => JSON.parse(line) as [string, unknown]));
};

/** A file of version 3 with something of everything in it. */
const fileOfVersion3 = (): string => {
  const path = newPath();
  makeOldFile(path, 3, "version-3/sqlite.sql").close();
  return path;
};

it("a SQLite file of version 3 has the same answers as before, and goes on", async () => {
  const path = fileOfVersion3();
  await using world = await openWorld({ name: "sqlite", open: (clock) => openSqlite(clock, path) });
  const { store } = world;
  await store.sweep(sweepOrder(world.clock.now()));
  expect(await allAnswers(store)).toEqual(answersOfVersion3());
  for (let n = 0; n < 100; n++) world.newId("other");
  const { turns, nextDueInMs } = await world.claim();
  expect(turns.map(({ turn }) => turn.sessionId)).toEqual(["chat:e3"]);
  expect(nextDueInMs).toBe(60_000);
  await world.end(turns[0] as (typeof turns)[number]);
  const before = store.stats();
  const request = { node: "node_b", leaseMs: LEASE_MS, limit: 10, freeOf: () => 10 };
  expect((await store.claimAnnouncements(request)).announcements).toHaveLength(1);
  expect(await world.start({ session: "chat:a" })).toMatchObject({ status: "queued" });
  for (const { sessionId } of (await store.listSessions({ limit: 100 })).items) {
    await store.deleteSession(sessionId, world.clock.now());
  }
  await world.sweep({ sessionsBefore: world.clock.now(), eventsBefore: world.clock.now() + 1, usageBefore: 1e15 });
  expect(store.stats().bytes).toBeLessThan(before.bytes / 2);
  expect(store.stats()).toMatchObject({ sessions: 0, turnsQueued: 0, turnsRunning: 0, announcements: 0 });
});
