import { describe, expect, it } from "vitest";
import { findMark } from "#core/turns/turn-events.ts";
import type { Turn } from "#store/store.ts";
import { groupOf } from "#test/stores/groups.ts";
import { ENTRIES, entriesOf, startCore, type TestCore } from "./start-core.ts";
import { at, namesOf, toldOf } from "./timelines.ts";

const WINDOW = 30_000;

function send(core: TestCore, text: string, id = `dlv_${text}`, key = id) {
  const delivery = at(core, { deliveryId: id, surface: "hooks" });
  return core.startFully({
    text,
    surface: "hooks",
    session: "webhook:a",
    delivery,
    group: groupOf(),
    idempotency: { key, hash: "" },
  });
}

async function followOpen(core: TestCore, { turnId }: Turn) {
  const turn = await core.core.turns.get(turnId);
  return core.follow(turn, await findMark(core.store, turn, undefined));
}

/** The claims of a durable store while 20 plain turns end. */
async function claimsOfPlainTurns(hasGroup: boolean): Promise<number> {
  let claims = 0;
  await using core = await startCore({
    wrapStore: (store) => ({
      durable: true,
      claimTurns: (request) => {
        claims++;
        return store.claimTurns(request);
      },
    }),
  });
  if (hasGroup) await send(core, "one");
  for (let n = 0; n < 20; n++) {
    const turn = await core.start({ session: `chat:${n}` });
    (await core.scripted.next()).end();
    expect((await core.ended(turn)).status).toBe("completed");
  }
  return claims;
}

describe("the turn of a group of webhooks", () => {
  it("adds no claims to the ends of other turns while its group is open", async () => {
    const withoutGroup = await claimsOfPlainTurns(false);
    // The opening of the group sets the time of the next claim.
    expect(await claimsOfPlainTurns(true)).toBeLessThanOrEqual(withoutGroup + 1);
  });

  it("runs when the group closes, with no other reason to look for work", async () => {
    await using core = await startCore();
    const { turn } = await send(core, "one");
    await core.clock.advance(WINDOW - 1);
    const joined = await send(core, "two");
    expect(joined).toMatchObject({ replayed: false, joinedBy: "dlv_two", turn: { turnId: turn.turnId } });
    await core.clock.advance(WINDOW - 1);
    expect(core.scripted.runs).toEqual([]);
    await core.clock.advance(1);
    const run = await core.scripted.next();
    expect(run.turn.turnId).toBe(turn.turnId);
    run.end();
    expect((await core.ended(turn)).status).toBe("completed");
    // It waited for its requests, and not for its agent.
    expect(await core.logged("turn.started")).toMatchObject([{ queuedMs: 0 }]);
  });

  it("runs before a gateway with a store in memory stops", async () => {
    await using core = await startCore();
    const { turn } = await send(core, "one");
    const drained = core.core.runner.drain(10_000);
    (await core.scripted.next()).end();
    expect((await core.ended(turn)).status).toBe("completed");
    expect(await drained).toBe(0);
  });

  it("is returned to a repeat of a request that joined, with the delivery that joined", async () => {
    await using core = await startCore();
    const opened = await send(core, "one");
    expect("joinedBy" in opened).toBe(false);
    await send(core, "two");
    expect(await send(core, "two", "dlv_again", "dlv_two")).toMatchObject({ replayed: true, joinedBy: "dlv_two" });
    expect((await send(core, "one", "dlv_again", "dlv_one")).joinedBy).toBeUndefined();
  });

  it("has a timeline from the opening of the group to its end", async () => {
    await using core = await startCore();
    await send(core, "one");
    await core.clock.advance(10_000);
    await send(core, "two");
    await core.clock.advance(WINDOW);
    const run = await core.scripted.next();
    run.end();
    await core.ended(run.turn);
    expect((await toldOf(core, "dlv_one")).map((step) => (step as unknown[]).slice(0, 2))).toEqual([
      [0, "request.received"],
      [0, "group.opened"],
      [10_000, "group.joined"],
      [40_000, "group.closed"],
      [40_000, "turn.queued"],
      [40_000, "turn.started"],
      [40_000, "turn.completed"],
    ]);
    expect(await namesOf(core, "dlv_two")).toEqual(["request.received", "request.coalesced"]);
  });

  it("has only the steps of the group before the close, in a session with other turns", async () => {
    await using core = await startCore();
    const other = await core.start({ session: "webhook:a" });
    (await core.scripted.next()).end();
    await core.ended(other);
    await send(core, "one");
    expect(await namesOf(core, "dlv_one")).toEqual(["request.received", "group.opened"]);
  });

  it("is followed from the close on by readers that begin while the group is open", async () => {
    await using core = await startCore();
    for (let n = 0; n < 3; n++) {
      const other = await core.start({ session: "webhook:a" });
      (await core.scripted.next()).end();
      await core.ended(other);
    }
    const { turn } = await send(core, "one");
    const reader = await followOpen(core, turn);
    await core.clock.advance(WINDOW);
    const run = await core.scripted.next();
    run.end();
    expect(entriesOf(await reader.done)).toEqual(ENTRIES);
  });

  it("is followed if the group closes and the turn ends while the reader begins", async () => {
    await using core = await startCore();
    const { turn } = await send(core, "one");
    const open = await core.core.turns.get(turn.turnId);
    await core.store.cancelTurn(turn.turnId, core.clock.now());
    const steps = await core.follow(open, await findMark(core.store, open, undefined)).done;
    expect(entriesOf(steps)).toEqual(["turn.queued", "turn.cancelled"]);
  });
});
