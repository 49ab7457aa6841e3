import { describe, expect, it } from "vitest";
import type { OpenTurnRecord } from "#store/rules/records.ts";
import type { ClaimedTurn, Entry } from "#store/store.ts";
import { OPEN_TURNS } from "#store/tables/layouts.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { endCompaction, startCompaction } from "./compactions.ts";
import { putRow, readRow } from "./rows.ts";
import { overlappingTests } from "./suite/overlapping.ts";
import { alternating, connect, twoStores } from "./two-stores.ts";
import { LEASE_MS, silent, times, type World } from "./world.ts";

await postgresTests((server) => {
  // In a separate database, because one test cuts all connections of a database.
  const open = twoStores({ createSchema: () => server.createDatabase() });

  describe("two gateways on one PostgreSQL, as one store", () => overlappingTests(alternating(server)));

  /** Two gateways on one database, and the notifications of each one's watchers. */
  const openTwo = async (wants = true) => {
    const two = await open();
    const { one: a, two: b } = two;
    const told = { a: [] as Entry[], b: [] as Entry[] };
    const cancelled: string[] = [];
    const deleted: string[] = [];
    const follow = (world: World, entries: Entry[]) =>
      world.store.watch({
        ...silent,
        entries: (_, news) => entries.push(...news),
        sessionDeleted: ({ sessionId }) => deleted.push(sessionId),
        cancel: (turnId) => cancelled.push(turnId),
        wants: () => wants,
      });
    follow(a, told.a);
    follow(b, told.b);
    const start = (world: World, session = "chat:a") => world.start({ session });
    return { ...two, a, b, told, cancelled, deleted, start };
  };

  const seqsOf = (entries: readonly Entry[]) => entries.map(({ seq }) => seq);

  it("give each turn to only one of them, in the order of its session, one per session at a time", async () => {
    await using two = await openTwo();
    const { a, b } = two;
    const started = await Promise.all(times(60, (n) => two.start(n % 2 ? a : b, `chat:${n % 7}`)));
    const inOrder = (sessionId: string) =>
      started.filter((turn) => turn.sessionId === sessionId).sort((one, other) => one.seq - other.seq);
    const running = new Set<string>();
    const ran = new Map<string, string[]>();
    let left = started.length;
    const work = async (world: World, node: string) => {
      while (left > 0) {
        const { turns } = await world.claim({ node, free: 3 });
        const run = async (claimed: ClaimedTurn) => {
          const { sessionId, turnId } = claimed.turn;
          expect(running.has(sessionId)).toBe(false);
          running.add(sessionId);
          ran.set(sessionId, [...(ran.get(sessionId) ?? []), turnId]);
          left--;
          await two.clock.settle();
          running.delete(sessionId);
          expect(await world.end(claimed)).toBe(true);
        };
        await Promise.all(turns.map(run));
      }
    };
    await Promise.all([work(a, "node_a"), work(b, "node_b")]);
    for (const [sessionId, turnIds] of ran) {
      expect(turnIds).toEqual(inOrder(sessionId).map(({ turnId }) => turnId));
    }
    await expect.poll(() => b.store.stats()).toMatchObject({ turnsQueued: 0, turnsRunning: 0 });
  });

  it("claim no turn at its start while another turn of its agent is ready, on whichever gateway it became ready", async () => {
    await using two = await openTwo();
    const { a, b, clock } = two;
    const startClaimed = (session: string) => {
      const claim = { now: clock.now(), node: "node_b", leaseMs: LEASE_MS, replyMessageId: b.newId("msg") };
      return b.store.startTurn(b.order({ session, claim }));
    };
    expect((await startClaimed("chat:a")).claimed).toBeDefined();
    await two.start(a, "chat:ready");
    expect((await startClaimed("chat:b")).claimed).toBeUndefined();
  });

  it("give a turn to the other gateway once its lease has expired, and refuse later calls with the first claim", async () => {
    await using two = await openTwo();
    const { a, b, clock } = two;
    const { turnId } = await two.start(a);
    const lost = await a.claimNext({ node: "node_a" });
    expect((await b.claim({ node: "node_b" })).turns).toEqual([]);
    await clock.advance(LEASE_MS);
    await b.sweep();
    const taken = await b.claimNext({ node: "node_b" });
    expect(taken.turn).toMatchObject({ turnId, attempt: 2 });
    expect(await a.store.extendClaims([lost.claim], LEASE_MS)).toEqual([lost.claim]);
    expect(await a.end(lost, { reply: "late" })).toBe(false);
    expect(await a.release(lost)).toBe(false);
    expect(await b.end(taken, { reply: "in time" })).toBe(true);
    expect(await a.store.getTurn(turnId)).toMatchObject({ status: "completed", reply: "in time" });
  });

  it("requeue a turn once if both gateways sweep at the same time", async () => {
    await using two = await openTwo();
    const { a, b, clock } = two;
    for (const session of ["chat:a", "chat:b", "chat:c"]) await two.start(a, session);
    await a.claim({ node: "node_a" });
    await clock.advance(LEASE_MS);
    await Promise.all([a.sweep(), b.sweep(), a.sweep(), b.sweep()]);
    for (const session of ["chat:a", "chat:b", "chat:c"]) {
      expect((await b.names(session)).filter((name) => name === "turn.queued")).toHaveLength(2);
    }
    const claims = await Promise.all([a.claim({ node: "node_a" }), b.claim({ node: "node_b" })]);
    expect(claims.flatMap(({ turns }) => turns)).toHaveLength(3);
  });

  it("notify each gateway once, in order, of all entries of a session that both write", async () => {
    await using two = await openTwo();
    const { a, b, told } = two;
    await Promise.all(times(40, (n) => two.start(n % 2 ? a : b)));
    for (const seqs of [told.a, told.b]) {
      await expect.poll(() => seqs.length).toBe(80);
      expect(seqsOf(seqs)).toEqual(times(80, (n) => n + 1));
    }
    expect(told.a).toEqual(await a.entries());
    expect(told.b).toEqual(told.a);
  });

  it("do not notify a gateway of another's entries if nothing follows them", async () => {
    await using two = await openTwo(false);
    const { a, b, told } = two;
    await two.start(a, "chat:a");
    const { turnId } = await two.start(b, "chat:b");
    await b.hears((what) => what.kind === "turn");
    await b.claim({ node: "node_b" });
    await a.store.cancelTurn(turnId, two.clock.now());
    await expect.poll(() => two.cancelled).toContain(turnId);
    expect(
      told.b.filter((entry) => entry.turnId !== turnId && entry.name === "message.created" && entry.role === "user"),
    ).toEqual([]);
  });

  it("notify the gateway that runs a turn if another one cancels the turn or deletes its session", async () => {
    await using two = await openTwo();
    const { a, b, cancelled, deleted } = two;
    for (const session of ["chat:a", "chat:b"]) await two.start(a, session);
    const { turns } = await b.claim({ node: "node_b" });
    const [first, second] = turns.map(({ turn }) => turn);
    await a.store.cancelTurn(first?.turnId ?? "", two.clock.now());
    await a.store.deleteSession(second?.sessionId ?? "", two.clock.now());
    await expect.poll(() => cancelled.filter((id) => id === first?.turnId)).toHaveLength(2);
    await expect.poll(() => cancelled.filter((id) => id === second?.turnId)).toHaveLength(2);
    await expect.poll(() => deleted).toEqual([second?.sessionId, second?.sessionId]);
  });

  it("run a compaction on either gateway, and notify the one that requested it of the result", async () => {
    await using two = await openTwo();
    const { a, b } = two;
    await two.start(a);
    await b.hears(({ kind }) => kind === "turn");
    const claimed = await a.claimNext();
    const turnId = await startCompaction(b);
    await a.end(claimed);
    const compaction = await a.claimNext();
    expect(compaction.turn.turnId).toBe(turnId);
    expect(await endCompaction(a, compaction)).toBe(true);
    await b.hears((what) => what.kind === "compacted" && what.turnId === turnId);
  });

  it("find a cancelled turn if its notification was lost", async () => {
    await using two = await openTwo();
    const { a, b, told, cancelled } = two;
    const { turnId } = await two.start(b);
    await b.claim({ node: "node_b" });
    await expect.poll(() => told.a.length).toBe(4);
    // As done by a gateway whose notification is lost.
    await using other = await connect(two.url);
    const turn = await readRow<OpenTurnRecord>(other, OPEN_TURNS, turnId);
    await putRow(other, OPEN_TURNS, { ...turn, open: { ...turn.open, isCancelled: true } });
    await expect.poll(() => cancelled.filter((id) => id === turnId)).toHaveLength(2);
    expect(told.a).toEqual(await a.entries());
  });

  it("find what happened while the connection for notifications was broken", async () => {
    await using two = await openTwo();
    const { a, b, told } = two;
    await two.start(a);
    await expect.poll(() => told.b.length).toBe(2);
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
      and application_name = 'agent-gateway' and (query like '%the connection is there%' or query like 'select pg_notify%')`;
    await Promise.all([server.run(two.url, cut), ...times(20, () => two.start(a)), ...times(5, () => two.start(b))]);
    await expect.poll(() => told.b.length).toBe(52);
    expect(seqsOf(told.b)).toEqual(times(52, (n) => n + 1));
    await expect.poll(() => seqsOf(told.a)).toEqual(seqsOf(told.b));
    for (const world of [a, b]) await world.hears(({ kind }) => kind === "deliveriesLost");
  });

  it("report a possible loss of delivery notifications after a suspension in which the others stopped counting the gateway", async () => {
    await using two = await openTwo();
    await two.clock.advance(11_000);
    for (const world of [two.a, two.b]) await world.hears(({ kind }) => kind === "deliveriesLost");
  });

  it("have the same counts on each gateway", async () => {
    await using two = await openTwo();
    const { a, b } = two;
    await Promise.all(times(30, (n) => two.start(n % 3 ? a : b, `chat:${n}`)));
    await a.claim({ free: 10 });
    for (const { store } of [a, b]) {
      await expect.poll(() => store.stats()).toMatchObject({ sessions: 30, turnsQueued: 20, turnsRunning: 10 });
      expect(store.agentCounts("main")).toMatchObject({ queued: 20, running: 10 });
    }
    expect(a.store.stats()).toEqual(b.store.stats());
  });
});
