import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import type { Store } from "#store/store.ts";
import { nameOf, startPlayed } from "./played-core.ts";
import type { WrapStore } from "./start-core.ts";

/** Watchers get everything except the ends of compactions. */
const withoutNewsOfCompactions: WrapStore = (store) => ({
  watch: (watcher) => store.watch({ ...watcher, compacted: () => {} }),
});

describe("a compaction that fails", () => {
  const startOne = async (options?: Parameters<typeof startPlayed>[0]) => {
    const core = await startPlayed(options);
    await core.talk("one");
    const done = core.compact();
    return Object.assign(core, { done, one: await core.nextAsked() });
  };

  it("changes nothing if the backend fails, and the next turn runs", async () => {
    await using core = await startOne();
    const turn = await core.start({ text: "two" });
    core.one.fail(new BackendError("no words left"));
    await expect(core.done).rejects.toMatchObject({ name: "turn-failed", detail: "no words left" });
    expect((await core.next()).turn.turnId).toBe(turn.turnId);
    expect(await core.read()).toEqual(["one", "re one", "two"]);
    expect(await core.logged("backend.failed")).toHaveLength(1);
  });

  it.each([undefined, 7, { text: "x" }, "x".repeat(4 * 2 ** 20 + 1)])(
    "accepts only a valid summary (%#)",
    async (answer) => {
      await using core = await startOne();
      core.one.answer(answer);
      expect(await nameOf(core.done)).toBe("turn-failed");
      expect(await core.store.readSummary("chat:a")).toBeUndefined();
    },
  );

  it.each([
    ["the stored result", true],
    ["a failure", false],
  ])("is answered with %s if the notification of its end is lost", async (_, isStored) => {
    await using core = await startPlayed({ wrapStore: withoutNewsOfCompactions });
    await core.talk("one");
    const done = core.compact();
    const one = await core.nextAsked();
    if (isStored) one.answer("the summary");
    else one.fail(new BackendError("no words left"));
    await core.clock.settle();
    await core.clock.advance(11_000);
    if (isStored) expect(await done).toMatchObject({ sessionId: "chat:a", compacted: true, before: { messages: 2 } });
    else await expect(done).rejects.toMatchObject({ name: "turn-failed", detail: expect.stringContaining("was lost") });
  });

  it("does not report an error that the backend did not mean for callers", async () => {
    await using core = await startOne();
    core.one.fail(new Error("secret"));
    await expect(core.done).rejects.not.toMatchObject({ detail: expect.stringContaining("secret") });
  });

  it("ends at the agent's deadline, and the backend is notified", async () => {
    await using core = await startOne({ agents: [{ name: "main", deadlineMs: 60_000 }] });
    await core.clock.advance(59_999);
    expect(core.one.signal.aborted).toBe(false);
    await core.clock.advance(1);
    expect(await nameOf(core.done)).toBe("turn-timeout");
    expect(core.one.signal.aborted).toBe(true);
    core.one.answer("late");
    await core.clock.settle();
    expect(await core.store.readSummary("chat:a")).toBeUndefined();
    await core.talk("two");
  });

  it("ends when its session is deleted, also while it waits", async () => {
    await using core = await startOne();
    const waiting = core.compact();
    await core.clock.settle();
    await core.store.deleteSession("chat:a", core.clock.now());
    expect([await nameOf(core.done), await nameOf(waiting)]).toEqual(["session-not-found", "session-not-found"]);
    expect(core.one.signal.aborted).toBe(true);
    await core.talk("anew");
    expect(await core.read()).toEqual(["anew", "re anew"]);
  });

  it("ends when the gateway stops, also while it waits, and the turns behind it continue", async () => {
    await using core = await startOne();
    const waiting = core.compact();
    const turn = await core.start({ text: "two" });
    core.core.compactions[Symbol.dispose]();
    expect([await nameOf(core.done), await nameOf(waiting)]).toEqual(["shutting-down", "shutting-down"]);
    expect((await core.next()).turn.turnId).toBe(turn.turnId);
    expect(await nameOf(core.compact())).toBe("shutting-down");
  });

  it("ends when the gateway stops, also while it waits for a place", async () => {
    await using core = await startPlayed();
    const sessions = Array.from({ length: 10 }, (_, n) => `chat:${n}`);
    for (const session of sessions) await core.talk("one", session);
    const all = sessions.map((session) => nameOf(core.compact(0, session)));
    await core.clock.settle();
    core.core.compactions[Symbol.dispose]();
    expect(new Set(await Promise.all(all))).toEqual(new Set(["shutting-down"]));
    expect(core.asked).toHaveLength(8);
  });

  it("fails if the agent was removed from the configuration", async () => {
    await using core = await startPlayed({ agents: [{ name: "main" }, { name: "stays" }] });
    await core.talk("one");
    await core.core.reconfigure(core.settingsWith([{ name: "stays" }]));
    expect(await nameOf(core.compact())).toBe("turn-failed");
  });

  it("runs again if the store did not accept its end", async () => {
    let isDown = false;
    const wrapStore = (store: Store): Partial<Store> => ({
      endTurn: (claim, end) => (isDown ? Promise.reject(new Error("the store is down")) : store.endTurn(claim, end)),
    });
    await using core = await startOne({ wrapStore });
    const turn = await core.start({ text: "two" });
    isDown = true;
    core.one.answer("in short");
    await core.clock.advance(60_000);
    isDown = false;
    (await core.nextAsked()).answer("again");
    expect(await core.done).toMatchObject({ compacted: true });
    expect((await core.next()).turn.turnId).toBe(turn.turnId);
    expect((await core.store.readSummary("chat:a"))?.text).toBe("again");
  });
});

describe("a session that grows past sessions.compactAt", () => {
  const text = "x".repeat(396);

  it("is compacted automatically after the turn that exceeded it", async () => {
    await using core = await startPlayed({ settings: { compactAt: 1_000 } });
    for (let n = 0; n < 5; n++) await core.talk(text);
    expect(core.asked).toHaveLength(0);
    await core.talk(text);
    const asked = await core.nextAsked();
    // Half of compactAt remains: five messages of about a hundred tokens.
    expect(asked.messages).toHaveLength(7);
    const turn = await core.start({ text: "next" });
    asked.answer("in short");
    const run = await core.next();
    expect(run.turn.turnId).toBe(turn.turnId);
    expect(await run.turn.history()).toHaveLength(6);
    core.say(run, "short");
    await core.ended(turn);
    await core.clock.settle();
    expect(core.asked).toHaveLength(1);
    expect(await core.logged("session.compacted")).toMatchObject([{ cause: "size", before: { messages: 12 } }]);
  });

  it("is not compacted again for a while after a failure", async () => {
    await using core = await startPlayed({ settings: { compactAt: 1_000 } });
    for (let n = 0; n < 6; n++) await core.talk(text);
    (await core.nextAsked()).fail(new BackendError("no words left"));
    await core.clock.settle();
    await core.talk(text);
    expect(core.asked).toHaveLength(1);
    await core.talk(text);
    expect(core.asked).toHaveLength(2);
    expect(await core.logged("compaction.failed")).toHaveLength(1);
  });

  it("is not compacted again and again if its summary is as long as the summarised messages", async () => {
    await using core = await startPlayed({ settings: { compactAt: 1_000 } });
    for (let n = 0; n < 6; n++) await core.talk(text);
    (await core.nextAsked()).answer("x".repeat(5_000));
    await core.clock.settle();
    await core.talk("short");
    expect(core.asked).toHaveLength(1);
  });

  it("does not change if compactAt is 0", async () => {
    await using core = await startPlayed({ settings: { compactAt: 0 } });
    await core.talk("x".repeat(1_000_000));
    expect(core.asked).toHaveLength(0);
  });

  it("is not compacted if it is deleted meanwhile", async () => {
    await using core = await startPlayed({ settings: { compactAt: 1_000 } });
    for (let n = 0; n < 6; n++) await core.talk(text);
    await core.nextAsked();
    await core.store.deleteSession("chat:a", core.clock.now());
    await core.clock.settle();
    expect(await core.logged("compaction.failed")).toHaveLength(0);
    for (let n = 0; n < 6; n++) await core.talk(text);
    expect(core.asked).toHaveLength(2);
  });
});
