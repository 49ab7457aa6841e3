import { describe, expect, it } from "vitest";
import { list } from "./deliveries.ts";
import { eventOrder, failEvent, news, queueEvent, takeEvents, toldNews, waiting } from "./inbound.ts";
import { sqlite } from "./sqlite-engine.ts";
import { deliveryOf, LEASE_MS, openWorld, RECORDER, refusal } from "./world.ts";

describe("calls that share a transaction", () => {
  it("see the events, deliveries and entries of the calls before them", async () => {
    await using world = await openWorld(sqlite);
    const { store } = world;
    const first = eventOrder(world, { key: "k", delivery: deliveryOf("dlv_1") });
    const again = eventOrder(world, { key: "k" });
    const other = eventOrder(world, { key: "k", hash: "other" });
    const [queued, event, repeat, refused, delivery, stream, listed, read] = await Promise.all([
      store.queueEvent(first),
      store.getEvent(first.eventId),
      store.queueEvent(again),
      refusal(store.queueEvent(other)),
      store.getDelivery("dlv_1"),
      store.readGatewayEntries({ after: 0, limit: 9 }),
      store.listDeliveries({ limit: 9 }),
      waiting(world),
    ]);
    expect(event).toEqual(queued.event);
    expect(repeat).toEqual({ event: queued.event, replayed: true });
    expect(refused).toBe("idempotency-mismatch");
    expect(delivery).toMatchObject({ eventId: first.eventId, outcome: "queued" });
    expect(stream.entries).toEqual(toldNews(world));
    expect(listed.items).toHaveLength(1);
    expect(read).toEqual([first.eventId]);
  });

  it("notify in the order of the stream, whichever of them added an entry", async () => {
    await using world = await openWorld(sqlite);
    const { eventId } = await queueEvent(world);
    const claimed = await takeEvents(world, [eventId]);
    const append = () =>
      world.store.appendGatewayEntry({ name: "agent.reloaded", agentName: "a", changed: [] }, { now: 1, keep: 99 });
    await Promise.all([queueEvent(world), append(), world.end(claimed), queueEvent(world), append()]);
    expect(toldNews(world).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(toldNews(world)).toEqual((await world.store.readGatewayEntries({ after: 0, limit: 99 })).entries);
  });

  it("delete a session and start it again for another agent", async () => {
    await using world = await openWorld(sqlite);
    const { store } = world;
    await world.end(await world.start({ agent: "one" }).then(() => world.claimNext()));
    const [, { turn }] = await Promise.all([
      store.deleteSession("chat:a", world.clock.now()),
      store.startTurn(world.order({ agent: "two" })),
    ]);
    await world.reopen();
    const listed = async (agent: string) => (await world.store.listSessions({ limit: 9, agents: [agent] })).items;
    expect(await listed("one")).toEqual([]);
    expect(await listed("two")).toMatchObject([{ sessionId: "chat:a", agent: "two", turnsQueued: 1 }]);
    expect((await world.claimNext()).turn.turnId).toBe(turn.turnId);
  });

  it("notify of work only if no claim of the same transaction took it", async () => {
    await using world = await openWorld(sqlite);
    const news = () => world.told.splice(0).filter(({ kind }) => kind === "turn").length;
    for (let n = 0; n < 3; n++) await world.start();
    let claimed = await world.claimNext();
    news();
    const taken = await Promise.all([world.end(claimed), world.claim()]);
    expect(news()).toBe(0);
    claimed = taken[1].turns[0] as typeof claimed;
    const left = await Promise.all([world.end(claimed), world.start({ session: "chat:b" }), world.claim({ free: 1 })]);
    expect(left[2].turns).toHaveLength(1);
    expect(news()).toBe(2);
    await Promise.all([world.release(left[2].turns[0] as typeof claimed, 1_000), world.claim()]);
    expect(news()).toBe(1);
  });
});

describe("a file that is opened again", () => {
  it("releases the announcements of its previous owner in the first sweep, and rejects the owner's claims", async () => {
    await using world = await openWorld(sqlite);
    const claimAnnouncements = () =>
      world.store.claimOutgoing({ node: "node_a", leaseMs: LEASE_MS, free: {}, others: { free: 9, before: 1e15 } });
    await world.start({ announce: { channel: "ops", hops: 0 } });
    await world.end(await world.claimNext());
    const [sent] = (await claimAnnouncements()).claimed;
    await world.reopen();
    await world.sweep();
    const [announcement] = (await claimAnnouncements()).claimed;
    expect(announcement?.claim.fence).toBeGreaterThan(sent?.claim.fence ?? Infinity);
    const lost = sent ? [sent.claim] : [];
    expect(await world.store.extendClaims(lost, LEASE_MS)).toEqual(lost);
  });

  it("continues with its counts, the positions of the stream, and the finished and unfinished records of the recorder", async () => {
    await using world = await openWorld(sqlite);
    const recorder = { ...RECORDER, entries: 2 };
    const dead = await queueEvent(world, { delivery: deliveryOf("dlv_dead"), recorder });
    const open = await queueEvent(world, { delivery: deliveryOf("dlv_open"), recorder });
    await failEvent(world, dead.eventId, 3);
    const before = { stats: world.store.stats(), news: await news(world) };
    await world.reopen();
    expect({ stats: world.store.stats(), news: await news(world) }).toEqual(before);
    const { event } = await world.store.queueEvent(eventOrder(world, { delivery: deliveryOf("dlv_next"), recorder }));
    expect(event.ordinal).toBeGreaterThan(dead.ordinal);
    expect((await list(world)).sort()).toEqual(["dlv_next", "dlv_open"]);
    expect((await world.store.readGatewayEntries({ after: 0, limit: 99 })).last).toBe(before.news.length + 1);
    expect(await waiting(world)).toEqual([open.eventId, event.eventId]);
  });
});
