import { describe, expect, it } from "vitest";
import type { TurnStep } from "#core/turns/turn-events.ts";
import type { Lane, Store, Turn } from "#store/store.ts";
import { sweepOrder } from "#test/stores/world.ts";
import { AMPLE, ENTRIES, entriesOf, isSaid, startCore, type TestCore, textOf } from "./start-core.ts";

describe("a reader of a turn", () => {
  it("is notified if the session is deleted while it reads", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const reader = core.follow(turn);
    await reader.until((step) => step.kind === "entry" && step.entry.name === "message.created");
    await core.store.deleteSession("chat:a", core.clock.now());
    await expect(reader.done).rejects.toMatchObject({ name: "turn-not-found", extra: { turnId: turn.turnId } });
  });

  it("is notified if the session was deleted before it started to read", async () => {
    await using core = await startCore();
    const turn = await core.start();
    await core.store.deleteSession("chat:a", core.clock.now());
    await expect(core.follow(turn).done).rejects.toMatchObject({ name: "turn-not-found" });
  });

  it("is notified if the turn was deleted by age before it was read", async () => {
    let mayRead: Promise<void> | undefined;
    const wrapStore = (store: Store): Partial<Store> => ({
      readEntries: async (...query) => {
        await mayRead;
        return store.readEntries(...query);
      },
    });
    await using core = await startCore({ wrapStore });
    const [turn, next] = [await core.start(), await core.start()];
    for (const { turnId } of [turn, next]) {
      (await core.scripted.next()).end();
      await core.ended({ turnId });
    }
    let open = () => {};
    mayRead = new Promise((resolve) => (open = resolve));
    const [reader, second] = [core.follow(turn), core.follow(next)];
    await ageOut(core, turn);
    open();
    await expect(reader.done).rejects.toMatchObject({ name: "turn-not-found", extra: { turnId: turn.turnId } });
    expect(entriesOf(await second.done)).toEqual(ENTRIES);
  });

  it("does not get waiting entries after the session is deleted", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const steps = core.core.followTurn(turn, undefined, (step) => [step]);
    expect((await steps.next()).value).toMatchObject({ entry: { name: "turn.queued" } });
    (await core.scripted.next()).end();
    await core.ended(turn);
    await core.store.deleteSession("chat:a", core.clock.now());
    await expect(steps.next()).rejects.toMatchObject({ name: "turn-not-found" });
    expect(core.core.streams.wants({ sessionId: "chat:a", agent: "" })).toBe(false);
  });

  it("that is slow gets all entries, including those that are too long for its queue", async () => {
    const reads = { count: 0 };
    await using core = await startCore({ wrapStore: countReads(reads) });
    const turn = await core.start();
    const steps = core.core.followTurn(turn, undefined, (step) => [step]);
    for (const name of ENTRIES.slice(0, 3)) expect((await steps.next()).value).toMatchObject({ entry: { name } });
    const run = await core.scripted.next();
    await core.clock.settle();
    const before = reads.count;
    for (const text of ["x".repeat(300_000), "y".repeat(300_000)]) run.say(text);
    run.end();
    await core.ended(turn);
    expect(reads.count).toBe(before);
    const rest: TurnStep[] = [];
    for await (const step of steps) rest.push(step);
    expect(entriesOf(rest)).toEqual(ENTRIES.slice(3));
    expect(textOf(rest)).toHaveLength(600_000);
    expect(reads.count).toBeGreaterThan(before);
  });

  it("that reads as fast as entries are stored reads the store only once", async () => {
    const reads = { count: 0 };
    await using core = await startCore({ wrapStore: countReads(reads) });
    const reader = core.follow(await core.start());
    const run = await core.scripted.next();
    for (const text of ["one ", "two ", "three"]) {
      run.say(text);
      await reader.until(isSaid(text));
    }
    run.end();
    expect(entriesOf(await reader.done)).toEqual(ENTRIES);
    expect(reads.count).toBe(1);
  });

  it("leaves without a message, and the turn continues", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    const reader = core.follow(turn);
    run.say("half");
    await reader.until(isSaid("half"));
    reader.stop();
    await reader.done;
    expect(run.signal.aborted).toBe(false);
    run.say(" and half");
    run.end();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", reply: "half and half" });
  });

  it("that stops during a page reads nothing more", async () => {
    let answer = () => {};
    let turns = 0;
    const wrapStore = (store: Store): Partial<Store> => ({
      readEntries: async (...query) => {
        await new Promise<void>((resolve) => (answer = resolve));
        return store.readEntries(...query);
      },
      getTurn: (id) => {
        turns++;
        return store.getTurn(id);
      },
    });
    await using core = await startCore({ wrapStore });
    const steps = core.core.followTurn(await core.start(), undefined, (step) => [step]);
    const next = steps.next();
    await core.clock.settle();
    await steps.return();
    turns = 0;
    answer();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(turns).toBe(0);
  });

  it("gets an end whose notification is later than the turn's end", async () => {
    const late: (() => void)[] = [];
    let isLate = false;
    let mayRead: Promise<void> | undefined;
    const wrapStore = (store: Store): Partial<Store> => ({
      watch: (watcher) =>
        store.watch({
          ...watcher,
          entries: (...news) =>
            void (isLate ? late.push(() => watcher.entries?.(...news)) : watcher.entries?.(...news)),
        }),
      getTurn: async (id) => {
        await mayRead;
        return store.getTurn(id);
      },
    });
    await using core = await startCore({ wrapStore });
    const turn = await core.start();
    const run = await core.scripted.next();
    let answer = () => {};
    mayRead = new Promise((resolve) => (answer = resolve));
    // The page after the newest entry is empty: the turn is then read too.
    const reader = core.follow(turn, { seq: 4, offset: 0 });
    await core.clock.settle();
    isLate = true;
    run.end();
    await core.clock.settle();
    answer();
    await core.clock.settle();
    for (const notify of late) notify();
    expect(entriesOf(await reader.done)).toEqual(ENTRIES.slice(3));
  });

  it("that left before it started reads nothing", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const steps = core.core.followTurn(turn, undefined, (step) => [step]);
    await steps.return();
    expect(await steps.next()).toEqual({ done: true, value: undefined });
  });
});

function countReads(reads: { count: number }) {
  return (store: Store): Partial<Store> => ({
    readEntries: (...query) => {
      reads.count++;
      return store.readEntries(...query);
    },
  });
}

/** Erases a turn's entries, while its session continues. */
async function ageOut({ store, clock }: TestCore, { sessionId, turnId }: Turn): Promise<void> {
  const now = clock.now();
  const task = { kind: "compact", keep: 0, keepTokens: undefined } as const;
  const of = {
    now,
    turnId: "cmp_1",
    sessionId,
    surface: "rpc",
    caller: "ops",
    task,
    limits: AMPLE.store,
  } as const;
  const freeOf = (_: string, lane: Lane) => (lane === "compact" ? 1 : 0);
  const request = { now, node: "node_a", leaseMs: 1e6, free: 1, freeOf, newMessageId: () => "" };
  // In one tick, before the core claims it.
  const [, { turns }] = await Promise.all([store.startCompaction(of), store.claimTurns(request)]);
  const [claimed] = turns;
  const messages = await store.readMessages(sessionId, { limit: 100 });
  const except = messages.filter((message) => message.turnId !== turnId).map(({ seq }) => seq);
  const sizes = { before: { messages: 4, tokens: 0 }, after: { messages: 2, tokens: 0 } };
  const compacted = { summary: "", outside: false, through: 1_000, except, ...sizes, freedBytes: 0 };
  const end = { now, status: "completed", reply: "", error: undefined, usage: undefined } as const;
  if (claimed) await store.endTurn(claimed.claim, { ...end, compaction: { ...sizes, compacted, reason: undefined } });
  await Promise.all([
    store.startCompaction({ ...of, turnId: "cmp_2" }),
    store.sweep(sweepOrder(now, { sessionsBefore: now })),
  ]);
  expect(await store.getTurn(turnId)).toBeUndefined();
}
