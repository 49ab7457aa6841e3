import { expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import type { Store } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { newPath, openSqlite } from "../stores/sqlite-engine.ts";
import { startBeating } from "./beating-core.ts";

const EVENTS = 450;

/** Writes down when turns are started and ended, and when the store has kept that. */
const watched = (store: Store, seen: string[]): Store => {
  const told =
    <Arguments extends unknown[], Answer>(name: string, call: (...given: Arguments) => Answer) =>
    (...given: Arguments): Answer => {
      seen.push(name);
      const answer = call(...given);
      Promise.resolve(answer).then(
        () => seen.push(`${name} kept`),
        () => seen.push(`${name} failed`),
      );
      return answer;
    };
  return Object.assign(Object.create(store) as Store, {
    startTurn: told("start", store.startTurn.bind(store)),
    endTurn: told("end", store.endTurn.bind(store)),
  });
};

/** Queues events, and beats until none waits; answers which were queued and which were handled, in order. */
const beatOn = async (change: (store: Store) => Store) => {
  const clock = createManualClock();
  const store = change(await openSqlite(clock, newPath()));
  await using core = await startBeating({ clock, wrapStore: () => store, backend: createEchoBackend() });
  const events = await core.queueMany(EVENTS);
  await core.beat();
  const queued = async () => {
    await clock.advance(100);
    return core.store.stats().eventsQueued;
  };
  await expect.poll(queued, { timeout: 10_000 }).toBe(0);
  const told = await core.told();
  return {
    queued: events.map(({ eventId }) => eventId),
    handled: told.flatMap((entry) => (entry.name === "event.handled" ? entry.eventId : [])),
  };
};

it("sends the end of a turn to SQLite together with the start of the next, and hands over each event once and in order", async () => {
  const seen: string[] = [];
  const { queued, handled } = await beatOn((store) => watched(store, seen));
  expect(handled).toEqual(queued);
  // As a rule: an answer may come a turn of the loop before the other.
  const together = seen.filter((name, n) => name === "start" && seen[n - 1] === "end");
  expect(together.length).toBeGreaterThan(0);
  expect(seen.filter((name) => name === "end kept")).toHaveLength(5);
});

it("hands over each event once, where the end of a turn is kept only when it is sent again", async () => {
  let failures = 2;
  const { queued, handled } = await beatOn((store) =>
    Object.assign(Object.create(store) as Store, {
      endTurn: async (...given: Parameters<Store["endTurn"]>) => {
        if (failures-- > 0) throw new Error("the disk is away");
        return await store.endTurn(...given);
      },
    }),
  );
  expect(handled.toSorted()).toEqual(queued.toSorted());
});
