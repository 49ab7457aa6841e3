import { describe, expect, it } from "vitest";
import type { Backend, BackendMessage } from "#backends/backend.ts";
import { BackendError } from "#core/errors.ts";
import type { Store } from "#store/store.ts";
import { createPuppet, type Played } from "#test/harness/backends.ts";
import { type CoreOptions, startCore } from "./start-core.ts";

/** One call of `summarise`, for a test to answer. */
type Asked = {
  messages: readonly string[];
  signal: AbortSignal;
  answer(text: unknown): void;
  fail(error: unknown): void;
};

const wordsOf = ({ role, text }: Pick<BackendMessage, "role" | "text">): string => `${role}: ${text}`;

/** A core whose backend a test plays: its turns, and its summaries. */
const startPlayed = async (options: CoreOptions & { backendWith?: Partial<Backend> } = {}) => {
  const puppet = createPuppet();
  const asked: Asked[] = [];
  const waiting: ((asked: Asked) => void)[] = [];
  const summarise = (messages: readonly BackendMessage[], signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      const one = { messages: messages.map(wordsOf), signal, answer: resolve as (text: unknown) => void, fail: reject };
      asked.push(one);
      waiting.shift()?.(one);
    });
  const backend = { ...puppet.backend, summarise, ...options.backendWith };
  const core = await startCore({ ...options, backend });
  let taken = 0;
  const say = (run: Played, text: string) => {
    run.say(text);
    run.end();
  };
  /** Says something in a session, and lets the backend answer. */
  const talk = async (text: string, session = "chat:a") => {
    const turn = await core.start({ text, session });
    say(await puppet.next(), `re ${text}`);
    await core.ended(turn);
    await core.clock.settle();
  };
  const read = async (query: { includeCompacted?: boolean } = {}) =>
    (await core.store.readMessages("chat:a", { limit: 100, ...query })).map(({ text }) => text).reverse();
  return Object.assign(core, {
    say,
    talk,
    read,
    next: puppet.next,
    asked,
    nextAsked: () =>
      asked.length > taken
        ? Promise.resolve(asked[taken++] as Asked)
        : new Promise<Asked>((resolve) => {
            taken++;
            waiting.push(resolve);
          }),
    compact: (keep = 0, sessionId = "chat:a") => {
      const done = core.core.compact({ sessionId, keep });
      done.catch(() => {});
      return done;
    },
  });
};

const nameOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "no error",
    (error: Error) => error.name,
  );

describe("compacting a session", () => {
  it("puts the backend's summary in the place of all but the last messages", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    await core.talk("two");
    const done = core.compact(1);
    const asked = await core.nextAsked();
    expect(asked.messages).toEqual(["user: one", "assistant: re one", "user: two"]);
    asked.answer("in short");
    const before = { messages: 4, tokens: 1 + 2 + 1 + 2 };
    const after = { messages: 1, tokens: 2 + 2 };
    expect(await done).toEqual({ sessionId: "chat:a", compacted: true, before, after });
    expect(await core.read()).toEqual(["re two"]);
    expect(await core.read({ includeCompacted: true })).toEqual(["one", "re one", "two", "re two"]);
    expect((await core.store.readEntries("chat:a", { after: 0, limit: 100 })).at(-1)).toMatchObject({
      name: "session.compacted",
      before,
      after,
    });
  });

  it("lets the next turn read the summary as a system message, and then what was kept", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    await core.talk("two");
    const done = core.compact(2);
    (await core.nextAsked()).answer("in short");
    await done;
    await core.start({ text: "three" });
    const run = await core.next();
    expect(await run.turn.history()).toEqual([
      { role: "system", text: "in short", outside: false },
      { role: "user", text: "two", outside: false },
      { role: "assistant", text: "re two", outside: false },
    ]);
  });

  it("keeps that outside text went into the summary", async () => {
    await using core = await startPlayed();
    const turn = await core.start({ text: "from a stranger", outside: true });
    core.say(await core.next(), "re");
    await core.ended(turn);
    for (const summary of ["first", "second"]) {
      await core.talk("one");
      const done = core.compact();
      (await core.nextAsked()).answer(summary);
      await done;
    }
    expect(await core.store.readSummary("chat:a")).toEqual({ text: "second", outside: true });
  });

  it("takes the earlier summary into account", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    const first = core.compact();
    (await core.nextAsked()).answer("first summary");
    await first;
    await core.talk("two");
    const second = core.compact();
    const asked = await core.nextAsked();
    expect(asked.messages).toEqual(["system: first summary", "user: two", "assistant: re two"]);
    asked.answer("both");
    expect(await second).toMatchObject({
      before: { messages: 2, tokens: 4 + 1 + 2 },
      after: { messages: 0, tokens: 1 },
    });
    await core.start({ text: "three" });
    expect((await (await core.next()).turn.history()).map(wordsOf)).toEqual(["system: both"]);
  });

  it.each([2, 20])("changes nothing when the session has no more than the %d messages to keep", async (keep) => {
    await using core = await startPlayed();
    await core.talk("one");
    const size = { messages: 2, tokens: 3 };
    const nothing = { sessionId: "chat:a", compacted: false, before: size, after: size };
    expect(await core.compact(keep)).toEqual(nothing);
    expect(core.asked).toHaveLength(0);
    expect((await core.store.getSession("chat:a"))?.lastSeq).toBe(6);
  });

  it("counts tokens as the backend does", async () => {
    await using core = await startPlayed({ backendWith: { countTokens: (text) => text.length * 10 } });
    await core.talk("one");
    const done = core.compact();
    (await core.nextAsked()).answer("sum");
    expect(await done).toMatchObject({ before: { messages: 2, tokens: 90 }, after: { messages: 0, tokens: 30 } });
  });

  it("keeps each reply with its message, however early that was sent", async () => {
    await using core = await startPlayed();
    const turns = [
      await core.start({ text: "one" }),
      await core.start({ text: "two" }),
      await core.start({ text: "three" }),
    ];
    for (const turn of turns) {
      core.say(await core.next(), `re ${turn.messageId === turns[0]?.messageId ? "one" : "other"}`);
      await core.ended(turn);
    }
    const done = core.compact(4);
    const asked = await core.nextAsked();
    expect(asked.messages).toEqual(["user: one", "assistant: re one"]);
    asked.answer("in short");
    await done;
    await core.start({ text: "four" });
    const history = await (await core.next()).turn.history();
    expect(history.map(wordsOf)).toEqual([
      "system: in short",
      ...["user: two", "assistant: re other", "user: three", "assistant: re other"],
    ]);
  });

  it("compacts a session of thousands of messages whole", async () => {
    await using core = await startPlayed({ agents: [{ name: "main" }] });
    for (let n = 0; n < 601; n++) await core.talk(`m${n}`);
    const done = core.compact(1);
    const asked = await core.nextAsked();
    expect(asked.messages).toHaveLength(1_201);
    expect(asked.messages[0]).toBe("user: m0");
    asked.answer("in short");
    expect(await done).toMatchObject({ before: { messages: 1_202 }, after: { messages: 1 } });
    await core.start({ text: "next" });
    expect((await (await core.next()).turn.history()).map(wordsOf)).toEqual(["system: in short", "assistant: re m600"]);
  });

  it("refuses a session that is not there", async () => {
    await using core = await startPlayed();
    expect(await nameOf(core.compact(0, "chat:none"))).toBe("session-not-found");
  });
});

describe("a compaction's place in the queue", () => {
  it("comes after the turns that were queued before it and before those that come later", async () => {
    await using core = await startPlayed();
    const first = await core.start({ text: "first" });
    await core.start({ text: "second" });
    const running = await core.next();
    const done = core.compact();
    await core.clock.settle();
    const third = await core.start({ text: "third" });
    core.say(running, "re first");
    await core.ended(first);
    const second = await core.next();
    expect(second.turn.message.text).toBe("second");
    expect(core.asked).toHaveLength(0);
    core.say(second, "re second");
    const asked = await core.nextAsked();
    expect(asked.messages).toEqual(["user: first", "assistant: re first", "user: second", "assistant: re second"]);
    expect((await core.turns.get(third.turnId)).status).toBe("queued");
    asked.answer("in short");
    expect(await done).toMatchObject({ before: { messages: 4 }, after: { messages: 0 } });
    const run = await core.next();
    expect(run.turn.message.text).toBe("third");
    expect((await run.turn.history()).map(wordsOf)).toEqual(["system: in short"]);
    expect(await core.read()).toEqual(["third"]);
  });

  it("runs beside the turns of other sessions", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    const done = core.compact();
    const asked = await core.nextAsked();
    await core.talk("other", "chat:b");
    asked.answer("in short");
    expect(await done).toMatchObject({ compacted: true });
  });

  it("is taken by two at once one after the other; the second finds the session short", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    const both = [core.compact(), core.compact()];
    (await core.nextAsked()).answer("in short");
    expect(await Promise.all(both)).toMatchObject([{ compacted: true }, { compacted: false, before: { messages: 0 } }]);
  });

  it("is refused when as many as may wait in the session do", async () => {
    const limits = { store: { turnsPerSession: 1, turns: 9, messagesPerSession: 99, storeBytes: 1e12 } };
    await using core = await startPlayed({ settings: { limits: { ...limits, recorder: { entries: 9, bytes: 1e9 } } } });
    await core.talk("one");
    const first = core.compact();
    await core.start({ text: "two" });
    expect(await nameOf(core.compact())).toBe("session-busy");
    (await core.nextAsked()).answer("in short");
    expect(await first).toMatchObject({ compacted: true });
  });

  it("keeps its place however long the summary takes", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    const done = core.compact();
    const asked = await core.nextAsked();
    const turn = await core.start({ text: "two" });
    await core.clock.advance(300_000);
    expect((await core.turns.get(turn.turnId)).status).toBe("queued");
    asked.answer("in short");
    expect(await done).toMatchObject({ compacted: true });
    expect((await core.next()).turn.turnId).toBe(turn.turnId);
  });

  it("has so many summaries of an agent written at once, and the others after them", async () => {
    await using core = await startPlayed();
    const sessions = Array.from({ length: 10 }, (_, n) => `chat:${n}`);
    for (const session of sessions) await core.talk("one", session);
    const all = sessions.map((session) => core.compact(0, session));
    await core.clock.settle();
    expect(core.asked).toHaveLength(8);
    for (let n = 0; n < 10; n++) (await core.nextAsked()).answer("in short");
    expect(await Promise.all(all)).toHaveLength(10);
  });
});

describe("a compaction that fails", () => {
  const startOne = async (options?: Parameters<typeof startPlayed>[0]) => {
    const core = await startPlayed(options);
    await core.talk("one");
    const done = core.compact();
    return Object.assign(core, { done, one: await core.nextAsked() });
  };

  it("changes nothing when the backend fails, and lets the next turn go on", async () => {
    await using core = await startOne();
    const turn = await core.start({ text: "two" });
    core.one.fail(new BackendError("no words left"));
    await expect(core.done).rejects.toMatchObject({ name: "turn-failed", detail: "no words left" });
    expect((await core.next()).turn.turnId).toBe(turn.turnId);
    expect(await core.read()).toEqual(["one", "re one", "two"]);
    expect(await core.logged("backend.failed")).toHaveLength(1);
  });

  it.each([undefined, 7, { text: "x" }, "x".repeat(4 * 2 ** 20 + 1)])(
    "takes nothing for a summary that is none (%#)",
    async (answer) => {
      await using core = await startOne();
      core.one.answer(answer);
      expect(await nameOf(core.done)).toBe("turn-failed");
      expect(await core.store.readSummary("chat:a")).toBeUndefined();
    },
  );

  it("says nothing of an error that the backend did not mean for callers", async () => {
    await using core = await startOne();
    core.one.fail(new Error("secret"));
    await expect(core.done).rejects.not.toMatchObject({ detail: expect.stringContaining("secret") });
  });

  it("ends at the agent's deadline, and tells the backend", async () => {
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

  it("ends when the gateway stops, also while it waits, and what waits behind it goes on", async () => {
    await using core = await startOne();
    const waiting = core.compact();
    const turn = await core.start({ text: "two" });
    core.core.stopCompactions();
    expect([await nameOf(core.done), await nameOf(waiting)]).toEqual(["shutting-down", "shutting-down"]);
    expect((await core.next()).turn.turnId).toBe(turn.turnId);
    expect(await nameOf(core.compact())).toBe("shutting-down");
  });

  it("ends when the gateway stops, also where it waits for room to be summarised", async () => {
    await using core = await startPlayed();
    const sessions = Array.from({ length: 10 }, (_, n) => `chat:${n}`);
    for (const session of sessions) await core.talk("one", session);
    const all = sessions.map((session) => nameOf(core.compact(0, session)));
    await core.clock.settle();
    core.core.stopCompactions();
    expect(new Set(await Promise.all(all))).toEqual(new Set(["shutting-down"]));
    expect(core.asked).toHaveLength(8);
  });

  it("has no backend to ask once the agent has left the configuration", async () => {
    await using core = await startPlayed({ agents: [{ name: "main" }, { name: "stays" }] });
    await core.talk("one");
    await core.core.reconfigure(core.settingsWith([{ name: "stays" }]));
    expect(await nameOf(core.compact())).toBe("turn-failed");
  });

  it("says so when its place was lost", async () => {
    const extendClaims: Store["extendClaims"] = async (claims) => [...claims];
    await using core = await startOne({ wrapStore: (store) => ({ ...store, extendClaims }) });
    await core.clock.advance(10_000);
    await expect(core.done).rejects.toMatchObject({ name: "turn-failed", detail: expect.stringContaining("place") });
  });

  it("keeps nothing when the store does not answer, and gives its place up in time", async () => {
    let isDown = false;
    const wrapStore = (store: Store): Store => ({
      ...store,
      endCompaction: (claim, end) =>
        isDown ? Promise.reject(new Error("the store is down")) : store.endCompaction(claim, end),
    });
    await using core = await startOne({ wrapStore });
    const turn = await core.start({ text: "two" });
    isDown = true;
    core.one.answer("in short");
    await expect(core.done).rejects.toThrow("the store is down");
    await core.clock.advance(31_000);
    expect((await core.next()).turn.turnId).toBe(turn.turnId);
    expect(await core.store.readSummary("chat:a")).toBeUndefined();
  });
});

describe("a session that grows past sessions.compactAt", () => {
  const text = "x".repeat(396);

  it("is compacted by itself after the turn that did it", async () => {
    await using core = await startPlayed({ settings: { compactAt: 1_000 } });
    for (let n = 0; n < 5; n++) await core.talk(text);
    expect(core.asked).toHaveLength(0);
    await core.talk(text);
    const asked = await core.nextAsked();
    // Half of compactAt stays: five messages of some hundred tokens.
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

  it("is left alone for a while when that was in vain", async () => {
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

  it("is not compacted again and again when its summary is as long as what it stands for", async () => {
    await using core = await startPlayed({ settings: { compactAt: 1_000 } });
    for (let n = 0; n < 6; n++) await core.talk(text);
    (await core.nextAsked()).answer("x".repeat(5_000));
    await core.clock.settle();
    await core.talk("short");
    expect(core.asked).toHaveLength(1);
  });

  it("stays as it is where compactAt is 0", async () => {
    await using core = await startPlayed({ settings: { compactAt: 0 } });
    await core.talk("x".repeat(1_000_000));
    expect(core.asked).toHaveLength(0);
  });

  it("is forgotten when it is deleted meanwhile", async () => {
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
