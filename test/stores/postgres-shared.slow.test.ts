import { describe, expect } from "vitest";
import type { BeatRecord } from "#store/rules/records.ts";
import type { ClaimedTurn, GatewayEntry, RateCount, WorkKind } from "#store/store.ts";
import { API_KEYS, BEATS, OUTGOING } from "#store/tables/layouts.ts";
import { newState } from "#store/tables/table-records.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { hookOf } from "./deliveries.ts";
import { claimBeat, planBeat, queueEvent, STREAM_KEEP, startBeat } from "./inbound.ts";
import { putRow, readRow } from "./rows.ts";
import { connect, type Two, testsOnTwo, twoStores } from "./two-stores.ts";
import { deliveryOf, LEASE_MS, RECORDER, silent, times, used, type World } from "./world.ts";

/** A beat that is due. */
function beatOf(agent: string): BeatRecord {
  return { agent, dueAt: 0, nextAt: 0, isAsked: false, run: undefined };
}

/** Resolves with the delay when a watcher on the second gateway is notified of work of this kind. */
function nextWork(kind: WorkKind, { two }: Two): Promise<number | undefined> {
  return new Promise((resolve) => {
    two.store.watch({ ...silent, work: (of, dueInMs) => of === kind && resolve(dueInMs) });
  });
}

await postgresTests((server) => {
  const it = testsOnTwo(server);
  const openElsewhere = twoStores(server);

  describe("two gateways that share one PostgreSQL", () => {
    it("number the gateway's stream without a gap, and notify both of each entry once, in order", async ({ on }) => {
      const told = [on.one, on.two].map((world) => {
        const entries: GatewayEntry[] = [];
        const done = new Promise<void>((resolve) => {
          world.store.watch({
            ...silent,
            wantsGateway: () => true,
            gatewayEntries: (more) => {
              entries.push(...more);
              if (entries.length >= 60) resolve();
            },
          });
        });
        return { entries, done };
      });
      await Promise.all(times(60, (n) => queueEvent(n % 2 ? on.one : on.two)));
      const { entries, last } = await on.one.store.readGatewayEntries({ after: 0, limit: 100 });
      expect(entries.map(({ seq }) => seq)).toEqual(times(60, (n) => n + 1));
      expect(last).toBe(60);
      for (const watcher of told) {
        await watcher.done;
        expect(watcher.entries).toEqual(entries);
      }
    });

    it("take turns to write, and do not wait for gateways in another schema of the database", async ({ on }) => {
      await using elsewhere = await openElsewhere();
      await using other = await connect(elsewhere.url);
      await other.query("begin");
      await other.query("select pg_advisory_xact_lock(7, current_schema()::regnamespace::oid::integer)");
      await on.one.start();
      const waits = elsewhere.one.start();
      const waiting = "select 1 from pg_stat_activity where wait_event = 'advisory' and query like 'begin%'";
      await expect.poll(() => server.query(waiting)).not.toEqual([]);
      await other.query("rollback");
      await waits;
    });

    it("notify each other of beats, announcements and keys", async ({ on }) => {
      const keysChanged = new Promise<void>((resolve) => on.two.store.watch({ ...silent, keysChanged: resolve }));
      const heard = [nextWork("beat", on), nextWork("outgoing", on), keysChanged];
      await queueEvent(on.one, { beatNow: true });
      await on.one.start({ announce: { channel: "ops", hops: 0 } });
      await on.one.end(await on.one.claimNext());
      const key = { keyId: "key_1", name: "ci", prefix: "gw_1", hash: "0".repeat(64), scopes: ["chat"] as const };
      await on.one.store.createKey({ ...key, createdAt: 1, lastUsedAt: undefined });
      await Promise.all(heard);
      expect(await on.two.store.listKeys()).toMatchObject([{ keyId: "key_1" }]);
    });

    it("are notified of turns after a claim only if more turns can be claimed", async ({ on: { one } }) => {
      const turnNews = () => one.told.filter(({ kind }) => kind === "turn").length;
      for (let n = 0; n < 3; n++) await one.start();
      const first = await one.claimNext();
      one.told.length = 0;
      const [, { turns }] = await Promise.all([one.end(first), one.claim()]);
      expect(turns).toHaveLength(1);
      expect(turnNews()).toBe(0);
      for (const session of ["chat:b", "chat:c"]) await one.start({ session });
      one.told.length = 0;
      await Promise.all([one.end(turns[0] as ClaimedTurn), one.claim({ free: 1 })]);
      expect(turnNews()).toBe(1);
    });

    it("find changes automatically if a notification was lost", async ({ on }) => {
      const keysChanged = new Promise<void>((resolve) => on.two.store.watch({ ...silent, keysChanged: resolve }));
      const heard = [nextWork("beat", on), nextWork("outgoing", on), keysChanged];
      const entries = new Promise<readonly GatewayEntry[]>((resolve) => {
        on.two.store.watch({ ...silent, wantsGateway: () => true, gatewayEntries: resolve });
      });
      await using other = await connect(on.url);
      await putRow(other, BEATS, beatOf("main"));
      const of = { id: "turn_x", endpoint: "channel:ops", sessionId: "chat:a", agent: "main", channel: "ops" } as const;
      const message = { ...of, hops: 0, createdAt: 1, attempts: 0, deliveryId: undefined };
      const unclaimed = { dueAt: undefined, fence: 0, lease: undefined };
      await putRow(other, OUTGOING, { message, ordinal: 1, place: 1, ...unclaimed });
      const key = { keyId: "key_1", name: "ci", prefix: "gw_1", hash: "", scopes: [], createdAt: 1 };
      await putRow(other, API_KEYS, { key: { ...key, lastUsedAt: undefined }, place: 1 });
      const state = JSON.stringify({ ...newState(), version: 1_000, gateway: { first: 1, last: 1 } });
      await other.query("update gateway_state set body = $1", [state]);
      await other.query(`insert into journal (session, first_seq, at, body) values
        (0, 1, 1, '[{"seq":1,"at":1,"name":"agent.reloaded","agentName":"main","changed":[]}]')`);
      await Promise.all(heard);
      expect(on.two.store.agentCounts("main").nextBeatAt).toBeDefined();
      expect(await entries).toEqual([{ seq: 1, at: 1, name: "agent.reloaded", agentName: "main", changed: [] }]);
    });

    it("are notified of a beat whose turn ended on the other gateway, and of the next beat that the other planned", async ({
      on,
    }) => {
      for (let n = 0; n < 2; n++) await queueEvent(on.one);
      await planBeat(on.one, 0);
      const claimed = await claimBeat(on.one);
      await on.clock.advance(1_000);
      const continued = nextWork("beat", on);
      await on.one.end(claimed);
      expect(await continued).toBeUndefined();
      // The notification and the poll after it.
      await expect.poll(async () => (await on.two.store.dueBeats(["main"])).due).toEqual(["main"]);
      const heard = new Promise<number>((resolve) => {
        on.two.store.watch({ ...silent, work: (kind, dueInMs) => kind === "beat" && dueInMs && resolve(dueInMs) });
      });
      expect(await startBeat(on.one)).toMatchObject({ outcome: "ended" });
      expect(await heard).toBe(60_000);
    });

    it("find a beat between two turns without a notification", async ({ on }) => {
      await queueEvent(on.one, { beatNow: true });
      await claimBeat(on.one);
      await expect.poll(() => on.two.store.agentCounts("main").nextBeatAt).toBeDefined();
      const heard = nextWork("beat", on);
      await using other = await connect(on.url);
      const beat = await readRow<BeatRecord>(other, BEATS, "main");
      await putRow(other, BEATS, { ...beat, run: beat.run && { ...beat.run, openTurnId: undefined } });
      expect(await heard).toBe(0);
      expect((await on.two.store.dueBeats(["main"])).due).toEqual(["main"]);
    });

    it("claim no work of an agent from the time the other paused it, and are notified when it is resumed", async ({
      on,
    }) => {
      const set = (paused: boolean) =>
        on.one.store.setPaused("main", { paused, now: on.clock.now(), streamKeep: STREAM_KEEP });
      const { pausedAt } = await set(true);
      await on.two.store.planBeat("main", { now: on.clock.now(), delayMs: 0, soonest: false });
      const claim = { now: on.clock.now(), node: "node_b", leaseMs: LEASE_MS, replyMessageId: on.two.newId("msg") };
      const { turn, claimed } = await on.two.store.startTurn(on.two.order({ claim }));
      expect(claimed).toBeUndefined();
      expect((await on.two.claim()).turns).toEqual([]);
      const beats = async () => (await on.two.store.dueBeats(["main"])).due;
      expect(await beats()).toEqual([]);
      await expect.poll(() => on.two.store.agentCounts("main").pausedAt).toBe(pausedAt);
      const heard = [nextWork("turn", on), nextWork("beat", on)];
      await set(false);
      await Promise.all(heard);
      expect((await on.two.claimNext()).turn.turnId).toBe(turn.turnId);
      expect(await beats()).toEqual(["main"]);
      await expect.poll(() => on.two.store.agentCounts("main").pausedAt).toBeUndefined();
    });

    it("are notified of a pause", async ({ on }) => {
      await on.one.store.planBeat("main", { now: on.clock.now(), delayMs: 60_000, soonest: false });
      await expect.poll(() => on.two.store.agentCounts("main").nextBeatAt).toBeDefined();
      await using other = await connect(on.url);
      const heard: string[] = [];
      other.on("notification", ({ payload }) => {
        if (payload?.includes('"paused"')) heard.push(payload);
      });
      const { rows } = await other.query("select oid from pg_namespace where nspname = current_schema()");
      const channel = `gateway_${rows[0].oid}`;
      await other.query(`listen ${channel}`);
      await on.one.store.setPaused("main", { paused: true, now: 7, streamKeep: STREAM_KEEP });
      await expect.poll(() => heard).toHaveLength(1);
      await expect.poll(() => on.two.store.agentCounts("main").pausedAt).toBe(7);
    });

    it("are not notified again and again of work that waits for a paused agent", async ({ on }) => {
      await on.one.store.setPaused("main", { paused: true, now: on.clock.now(), streamKeep: STREAM_KEEP });
      await on.one.start();
      await using other = await connect(on.url);
      let woken = 0;
      let looks = 0;
      on.two.store.watch({ ...silent, work: (kind) => kind === "turn" && woken++ });
      // A poll of the database finds a beat without a notification. The turn's own notification may still arrive before one.
      const wokenByALook = async () => {
        woken = 0;
        const looked = nextWork("beat", on);
        await putRow(other, BEATS, beatOf(`other-${++looks}`));
        await looked;
        return woken;
      };
      await wokenByALook();
      await expect.poll(wokenByALook).toBe(0);
    });

    it("add up the counts of both", async ({ on }) => {
      for (const [n, world] of [on.one, on.two].entries()) {
        await world.start({ session: `chat:${n}`, delivery: deliveryOf(`dlv_${n}`) });
        await world.end(await world.claimNext(), { usage: used(n + 1, 1) });
        await queueEvent(world, { beatNow: n === 0 });
      }
      const counts = (world: World) => {
        const { sessions, eventsQueued, deliveries, deliveryBytes, bytes } = world.store.stats();
        const { waitingEvents } = world.store.agentCounts("main");
        return { sessions, eventsQueued, deliveries, deliveryBytes, bytes, waitingEvents };
      };
      const all = { sessions: 2, eventsQueued: 2, deliveries: 2, waitingEvents: 2 };
      for (const world of [on.one, on.two]) await expect.poll(() => counts(world)).toMatchObject(all);
      expect(counts(on.two)).toEqual(counts(on.one));
      await expect.poll(() => on.two.store.agentCounts("main").nextBeatAt).toBeDefined();
      const [count, ...more] = await on.two.store.readUsage({ from: 0, to: Infinity });
      expect(count).toMatchObject({ messages: 2, completed: 2, attempts: 2, input: 3, output: 2 });
      expect(more).toEqual([]);
      await on.clock.advance(3_600_000);
      await on.one.sweep({ now: on.clock.now() });
      expect(await on.two.store.readUsage({ from: 0, to: Infinity })).toEqual([count]);
    });

    it("limit the recorder's ring together, once they know of each other", async ({ on }) => {
      const recorder = { ...RECORDER, entries: 10, refused: 10 };
      const fill = async (round: number) => {
        const record = (n: number) => {
          const delivery = hookOf(`dlv_${round}_${n}`, { answer: "unmatched" });
          return (n % 2 ? on.one : on.two).store.recordDelivery(delivery, recorder);
        };
        await Promise.all(times(20, record));
      };
      /** The number, once both have been notified. */
      const known = async () => {
        const { length } = (await on.one.store.listDeliveries({ limit: 100 })).items;
        for (const { store } of [on.one, on.two]) await expect.poll(() => store.stats().deliveries).toBe(length);
        return length;
      };
      await fill(0);
      await known();
      await fill(1);
      const kept = await known();
      expect(kept).toBeGreaterThanOrEqual(10);
      expect(kept).toBeLessThanOrEqual(20);
      await on.one.store.recordDelivery(hookOf("dlv_last", { answer: "unmatched" }), recorder);
      expect((await on.two.store.listDeliveries({ limit: 100 })).items).toHaveLength(10);
    });

    it("accept together as many requests as the rate limit allows, whichever gateway gets them", async ({ on }) => {
      const limit = { maxRequests: 30, windowMs: 60_000 };
      const count = (n: number) => (n % 2 ? on.one : on.two).store.shared?.countRequest("shared ü", limit);
      const passed = (counts: (RateCount | undefined)[]) => counts.filter((one) => one && "left" in one).length;
      const first = await Promise.all(times(50, count));
      expect(passed(first)).toBe(30);
      const waits = first.flatMap((one) => (one && "waitMs" in one ? [one.waitMs] : []));
      for (const waitMs of waits) expect(waitMs).toBeGreaterThanOrEqual(60_000);
      await on.clock.advance(59_999);
      expect(passed(await Promise.all(times(4, count)))).toBe(0);
      await on.clock.advance(1_001);
      expect(passed(await Promise.all(times(50, count)))).toBe(30);
      expect(await on.one.store.shared?.countRequest("other", { maxRequests: 2, windowMs: 1_000 })).toEqual({
        left: 1,
      });
    });

    it("read the rest of a rate limit that both share, without counting the read", async ({ on }) => {
      const limit = { maxRequests: 3, windowMs: 60_000 };
      const count = (n: number) => (n % 2 ? on.one : on.two).store.shared?.countRequest("used", limit);
      const read = () => on.two.store.shared?.readRequests(["unused ü", "used"], limit);
      const unused = { left: 3, wholeInMs: undefined };
      expect(await read()).toEqual([unused, unused]);
      await Promise.all(times(2, count));
      for (let n = 0; n < 5; n++) expect((await read())?.[1]?.left).toBe(1);
      await on.clock.advance(30_000);
      await count(1);
      const [, used] = (await read()) ?? [];
      expect(used?.left).toBe(0);
      expect(used?.wholeInMs).toBeGreaterThanOrEqual(60_000);
      expect(used?.wholeInMs).toBeLessThanOrEqual(61_000);
      await on.clock.advance(31_001);
      expect((await read())?.[1]?.left).toBe(2);
      expect(await on.one.store.shared?.readRequests(["used"], { maxRequests: 5, windowMs: 1_000 })).toEqual([
        { left: 5, wholeInMs: undefined },
      ]);
      expect(await on.one.store.shared?.readRequests([], limit)).toEqual([]);
    });

    it("exchange the replies that they write, until these are dropped", async ({ on }) => {
      const [writer, reader] = [on.one.store.shared, on.two.store.shared];
      if (!writer || !reader) throw new Error("nothing is shared");
      const asked = new Promise<readonly string[]>((resolve) => on.one.store.watch({ ...silent, textsAsked: resolve }));
      const put = new Promise<readonly string[]>((resolve) => on.two.store.watch({ ...silent, textsPut: resolve }));
      await reader.askTexts(["chat:a"]);
      expect(await asked).toEqual(["chat:a"]);
      const of = { sessionId: "chat:a", seq: 4, turnId: "turn_1", messageId: "msg_1" };
      const pieces = [
        { ...of, offset: 0, text: "hello \ud83d" },
        { ...of, offset: 7, text: "\ude42\u0000" },
      ];
      await writer.putTexts(pieces);
      await writer.putTexts(pieces);
      expect(await put).toEqual(["chat:a"]);
      const read = async (seq: number, offset: number) =>
        (await reader.readTexts([{ sessionId: "chat:a", seq, offset }])).map((one) => [one.seq, one.offset, one.text]);
      expect(await reader.readTexts([{ sessionId: "chat:a", seq: 4, offset: 0 }])).toEqual(pieces);
      expect(await read(4, 3)).toEqual([
        [4, 3, "lo \ud83d"],
        [4, 7, "\ude42\u0000"],
      ]);
      expect(await read(4, 7)).toEqual([[4, 7, "\ude42\u0000"]]);
      expect(await read(4, 9)).toEqual([]);
      expect(await read(2, 50)).toHaveLength(2);
      expect(await read(5, 0)).toEqual([]);
      await writer.dropTexts([{ sessionId: "chat:a", seq: 4 }]);
      expect(await read(4, 0)).toEqual([]);
    });
  });
});
