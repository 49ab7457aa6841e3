import pg from "pg";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { ClaimedMessage, ClaimedTurn } from "#store/store.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { groupOf } from "./groups.ts";
import { claimBeat, queueEvent, queueOrder, startBeat } from "./inbound.ts";
import { type Two, testsOnTwo } from "./two-stores.ts";
import { deliveryOf, endTurn, LEASE_MS, NO_USAGE, RECORDER, times, type World } from "./world.ts";

/** The exchanges of each writing transaction that has ended, including the commit. */
const counted: number[] = [];
const open = new WeakMap<object, number>();
const send = pg.Client.prototype.query;

function countedQuery(this: pg.Client, ...args: unknown[]): unknown {
  const [text] = args;
  if (typeof text === "string") {
    const isFirst = text.startsWith("begin;");
    const before = isFirst ? 0 : open.get(this);
    if (before !== undefined) {
      open.set(this, before + 1);
      if (/(^|;\n)commit$/.test(text)) {
        counted.push(before + 1);
        open.delete(this);
      }
    }
  }
  return (send as (...all: unknown[]) => unknown).apply(this, args);
}

/** The largest number of exchanges of a transaction in a call. A poll may run at the same time. */
async function exchangesOf(call: () => Promise<unknown>): Promise<number> {
  counted.length = 0;
  await call();
  return Math.max(...counted);
}

await postgresTests((server) => {
  const test = testsOnTwo(server);

  describe("the exchanges of a PostgreSQL transaction", () => {
    beforeAll(() => {
      pg.Client.prototype.query = countedQuery as typeof send;
    });
    afterAll(() => {
      pg.Client.prototype.query = send;
    });

    /** Counts the exchanges of the most frequent rules. The agent, the counters of the hour and a full recorder exist. */
    const measure = async ({ one, two, clock }: Two, round: number): Promise<Record<string, number>> => {
      const found: Record<string, number> = {};
      const recorder = { ...RECORDER, entries: 3 };
      let made = round * 1_000;
      const recorded = () => ({ delivery: deliveryOf(`dlv_${++made}`), recorder });
      const session = (name: string) => `chat:${name}${round}`;
      const claim = { now: one.clock.now(), node: "node_a", leaseMs: LEASE_MS, replyMessageId: "msg" };
      const usage = { model: "echo", usage: NO_USAGE, latencyMs: 1 };
      for (let n = 0; n < 5; n++) {
        await endTurn(one.store, claim.now, { session: session("known"), ...recorded() });
      }
      await two.start({ session: session("other"), agent: "other" });
      const grouped = (n: number) => ({
        session: session(`group${n}`),
        group: groupOf({ key: `group:${round} ${n}` }),
      });
      found.openGroups = await exchangesOf(() =>
        Promise.all(times(9, (n) => one.start({ ...grouped(n), ...recorded() }))),
      );
      found.joinGroup = await exchangesOf(() => two.start({ ...grouped(0), ...recorded() }));
      await clock.advance(30_000);
      found.closeGroups = await exchangesOf(async () => {
        for (const claimed of (await one.claim()).turns) await one.end(claimed);
      });

      const start =
        (world: World, name: string, how = {}) =>
        () =>
          world.start({ session: session(name), ...recorded(), ...how });
      found.newSession = await exchangesOf(start(one, "new"));
      found.knownSession = await exchangesOf(start(one, "known"));
      found.elsewhere = await exchangesOf(start(two, "new"));
      let turns: readonly ClaimedTurn[] = [];
      found.claim = await exchangesOf(async () => {
        ({ turns } = await one.claim());
      });
      const [first, second] = turns;
      if (!first || !second) throw new Error("two turns are claimed");
      found.endTurn = await exchangesOf(() => one.end(first, { usage }));
      found.endAndClaim = await exchangesOf(() => Promise.all([one.end(second, { usage }), one.claim()]));
      found.startClaimed = await exchangesOf(start(one, "claimed", { claim }));
      found.queueEvent = await exchangesOf(() => queueEvent(one, { ...recorded(), beatNow: true }));
      found.queueMany = await exchangesOf(() =>
        Promise.all(times(200, () => one.store.queueEvent(queueOrder(claim.now, recorded())))),
      );
      found.record = await exchangesOf(() => one.store.recordDelivery(recorded().delivery, recorder));
      let begun: ClaimedTurn | undefined;
      found.startBeat = await exchangesOf(async () => {
        begun = await claimBeat(one);
      });
      const { claim: held } = begun as ClaimedTurn;
      found.extend = await exchangesOf(() => one.store.extendClaims([held], LEASE_MS));
      found.endBeatTurn = await exchangesOf(() => one.end({ claim: held }, { usage }));
      for (let step = "started"; step === "started"; ) {
        found.endBeat = await exchangesOf(async () => {
          const next = await startBeat(one, { node: "node_a" });
          step = next.outcome;
          begun = next.outcome === "started" ? next.started.claimed : undefined;
        });
        if (begun) await one.end(begun);
      }
      await one.claim();
      await one.start({ session: session("announced"), announce: { channel: "ops", hops: 0 }, ...recorded() });
      const [announced] = (await one.claim()).turns;
      await one.end(announced as ClaimedTurn, { usage });
      let message: ClaimedMessage | undefined;
      found.claimOutgoing = await exchangesOf(async () => {
        const request = {
          node: "node_a",
          leaseMs: LEASE_MS,
          free: { "channel:ops": 1 },
          others: { free: 0, before: 0 },
        };
        [message] = (await one.store.claimOutgoing(request)).claimed;
      });
      const step = { at: claim.now, name: "announcement.delivered", detail: undefined };
      found.endOutgoing = await exchangesOf(() =>
        one.store.endOutgoing((message as ClaimedMessage).claim, { state: "delivered", reason: undefined, step }),
      );
      return found;
    };

    test("are as few as the most frequent rules need", async ({ on }) => {
      // A poll may share a transaction with a call, and needs more.
      const rounds = [await measure(on, 1), await measure(on, 2), await measure(on, 3)];
      const least = (name: string) => Math.min(...rounds.map((found) => found[name] ?? Infinity));
      expect(Object.fromEntries(Object.keys(rounds[0] ?? {}).map((name) => [name, least(name)]))).toEqual({
        newSession: 2,
        knownSession: 2,
        elsewhere: 2,
        openGroups: 2,
        joinGroup: 3,
        closeGroups: 5,
        claim: 4,
        endTurn: 2,
        endAndClaim: 4,
        startClaimed: 2,
        queueEvent: 2,
        queueMany: 2,
        record: 2,
        startBeat: 3,
        extend: 2,
        endBeatTurn: 3,
        endBeat: 2,
        claimOutgoing: 3,
        endOutgoing: 2,
      });
    });
  });
});
