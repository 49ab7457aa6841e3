import { describe, expect, it } from "vitest";
import { openDriver } from "#store/sqlite/driver.ts";
import { hookOf, list, record } from "./deliveries.ts";
import { eventOrder, queueEvent, STREAM_KEEP, takeEvents, waiting } from "./inbound.ts";
import { pathOf, sqlite } from "./sqlite-engine.ts";
import { openWorld, type World } from "./world.ts";

const together = async (world: World, wishes: readonly Parameters<typeof eventOrder>[1][]): Promise<string[]> => {
  const orders = wishes.map((wish) => eventOrder(world, wish));
  await Promise.all(orders.map((order) => world.store.queueEvent(order)));
  return orders.map(({ eventId }) => eventId);
};
const statusOf = async (world: World, eventId: string) => (await world.store.getEvent(eventId))?.status;
/** The texts that are in the file. */
const keptTexts = (world: World): string => {
  const driver = openDriver(pathOf(world.store));
  try {
    return String(driver.prepare("SELECT group_concat(body) FROM events").raw().get([]));
  } finally {
    driver.close();
  }
};

describe("events that were queued together", () => {
  it("are each their agent's, wait for their own turn, and are what became of them after a restart, too", async () => {
    await using world = await openWorld(sqlite);
    const ids = await together(world, [{}, { agent: "other" }, {}, { agent: "other" }, {}]);
    const [first, second, third, fourth, fifth] = ids as [string, string, string, string, string];
    await world.end(await takeEvents(world, [third]));
    await world.end(await takeEvents(world, [second], { agent: "other", maxAttempts: 1 }), { status: "failed" });
    await world.end(await takeEvents(world, [fifth]), { status: "failed" });
    const look = async () => [
      await waiting(world),
      await waiting(world, { agent: "other" }),
      ...(await Promise.all(ids.map((id) => statusOf(world, id)))),
      (await world.store.getEvent(fifth))?.attempts,
      world.store.agentCounts("main").waitingEvents,
      world.store.agentCounts("other").waitingEvents,
    ];
    const found = [[first, fifth], [fourth], "queued", "dead", "handled", "queued", "queued", 1, 2, 1];
    expect(await look()).toEqual(found);
    await world.reopen();
    expect(await look()).toEqual(found);
  });

  it("go one by one, and no text of one that is gone stays beside the others", async () => {
    await using world = await openWorld(sqlite);
    const ids = await together(world, [{ text: "the first secret" }, { text: "the second" }, { text: "the third" }]);
    const [first, second, third] = ids as [string, string, string];
    const { bytes } = world.store.stats();
    await world.end(await takeEvents(world, [first]));
    await world.sweep({ eventsBefore: world.clock.now() + 1 });
    expect(await statusOf(world, first)).toBeUndefined();
    const listed = (await world.store.listEvents({ limit: 9 })).items.map(({ text }) => text);
    expect(listed).toEqual(["the third", "the second"]);
    expect(keptTexts(world)).toMatch(/second.*third/);
    expect(keptTexts(world)).not.toContain("secret");
    await world.end(await takeEvents(world, [second, third]));
    expect(world.store.stats().eventsQueued).toBe(0);
    await world.reopen();
    await world.sweep({ eventsBefore: world.clock.now() + 1 });
    expect(await Promise.all(ids.map((id) => statusOf(world, id)))).toEqual([undefined, undefined, undefined]);
    expect(world.store.stats().bytes).toBeLessThan(bytes + 5_000);
  });

  it("are found by ids that do not come in order, however many came between, and when one is queued again", async () => {
    await using world = await openWorld(sqlite);
    const idOf = (n: number) => `evt_${String(n).padStart(6, "0")}`;
    for (let n = 100; n < 200; n++) await queueEvent(world, { eventId: idOf(n) });
    const [early, amid] = [idOf(1), idOf(150.5)];
    await queueEvent(world, { eventId: early });
    await queueEvent(world, { eventId: amid });
    const [oldest] = await waiting(world);
    await world.end(await takeEvents(world, [oldest as string], { maxAttempts: 1 }), { status: "failed" });
    const again = { now: world.clock.now(), beatNow: false, streamKeep: STREAM_KEEP };
    expect(await world.store.requeueEvent(oldest as string, again)).toMatchObject({ status: "queued", attempts: 0 });
    for (const _ of ["as it is", "after a restart"]) {
      for (const id of [early, amid, idOf(100), idOf(137), idOf(199)]) expect(await statusOf(world, id)).toBe("queued");
      for (const id of [idOf(2), idOf(150.2), idOf(300)]) expect(await statusOf(world, id)).toBeUndefined();
      expect((await waiting(world)).slice(-3)).toEqual([early, amid, idOf(100)]);
      await world.reopen();
    }
  });

  it("are handed over in parts where their texts are long, none twice and none left out", async () => {
    await using world = await openWorld(sqlite);
    const ids = await together(
      world,
      Array.from({ length: 150 }, (_, n) => ({ text: `${n} ${"ü".repeat(2_000)}` })),
    );
    expect(await waiting(world)).toEqual(ids);
    const some = await waiting(world, { bytes: 40_000 });
    expect(some).toEqual(ids.slice(0, 9));
    await world.end(await takeEvents(world, [...some, ids[140] as string]));
    expect(await waiting(world)).toEqual(ids.filter((_, n) => n > 8 && n !== 140));
  });
});

describe("deliveries that were recorded together", () => {
  it("are erased one by one, and keep the steps that were added to the others", async () => {
    await using world = await openWorld(sqlite);
    const ids = ["dlv_a", "dlv_b", "dlv_c"];
    const body = Buffer.from('{"secret":"what nobody is to find"}');
    await Promise.all(
      ids.map((id, n) => world.start({ session: `chat:${n}`, delivery: hookOf(id, { body, steps: [] }) })),
    );
    const step = { at: 5, name: "announcement.retried", detail: "{}" };
    for (const id of ids) await world.store.addDeliveryStep(id, step);
    await world.store.deleteSession("chat:1", world.clock.now());
    const look = () =>
      Promise.all(ids.map(async (id) => [await world.store.getDelivery(id), world.store.stats().deliveryBytes]));
    const found = await look();
    expect(found.map(([kept]) => kept)).toMatchObject([
      { body, steps: [step] },
      { body: undefined, steps: [{ ...step, detail: undefined }], outcome: "gone" },
      { body, steps: [step] },
    ]);
    await world.reopen();
    expect(await look()).toEqual(found);
    expect(await list(world)).toEqual([...ids].reverse());
  });

  it("are each as they came, whatever of them is alike", async () => {
    await using world = await openWorld(sqlite);
    const wishes = [
      {},
      { headers: "x-other: 1" },
      { path: "/hooks/other", mapping: undefined, steps: [] },
      { caller: "somebody", address: "10.0.0.7", method: "PUT" },
      { headers: "x-other: 1", body: Buffer.from([0, 255]), senderId: undefined },
    ];
    const deliveries = wishes.map((wish, n) => hookOf(`dlv_${n}`, wish));
    await Promise.all(deliveries.map((delivery) => record(world, delivery)));
    const found = async () => {
      const all = await Promise.all(deliveries.map(({ deliveryId }) => world.store.getDelivery(deliveryId)));
      return all.map((one) => one && { ...one, outcome: undefined });
    };
    expect(await found()).toEqual(deliveries);
    await world.reopen();
    expect(await found()).toEqual(deliveries);
    expect(await list(world, { mapping: "github-push" })).toEqual(["dlv_4", "dlv_3", "dlv_1", "dlv_0"]);
  });
});
