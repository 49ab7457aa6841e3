import { describe, expect, it } from "vitest";
import { earlierAsContext } from "#core/sessions/earlier-messages.ts";
import { nameOf, startPlayed, wordsOf } from "./played-core.ts";
import { AMPLE } from "./start-core.ts";

describe("compacting a session", () => {
  it("replaces all but the last messages with the backend's summary", async () => {
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

  it("gives the summary to the next turn as a system message, followed by the remaining messages", async () => {
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

  it("also summarises and counts what was said before the session began, and frees the bytes that the store counted", async () => {
    await using core = await startPlayed();
    const context = earlierAsContext([
      { role: "system", text: "Be brief." },
      { role: "user", text: "zero" },
    ]);
    const turn = await core.start({ text: "one", context });
    const run = await core.next();
    expect(run.turn.message).toEqual({ text: "one", outside: false, context: undefined });
    expect((await run.turn.history()).map(wordsOf)).toEqual(["system: Be brief.", "user: zero"]);
    core.say(run, "re one");
    await core.ended(turn);
    const done = core.compact(0);
    const asked = await core.nextAsked();
    expect(asked.messages).toEqual(["system: Be brief.", "user: zero", "user: one", "assistant: re one"]);
    asked.answer("in short");
    expect(await done).toMatchObject({
      before: { messages: 2, tokens: 3 + 1 + 1 + 2 },
      after: { messages: 0, tokens: 2 },
    });
    expect(await core.store.getSession("chat:a")).toMatchObject({ contextBytes: "in short".length });
  });

  it("records that text from outside is part of the summary", async () => {
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

  it("includes the earlier summary", async () => {
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

  it.each([2, 20])("changes nothing if the session has at most the %d messages that remain", async (keep) => {
    await using core = await startPlayed();
    await core.talk("one");
    const size = { messages: 2, tokens: 3 };
    const reason = `It has 2 messages, and the last ${keep} are kept. Send a smaller \`keep\`.`;
    const nothing = { sessionId: "chat:a", compacted: false, reason, before: size, after: size };
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

  it("does not separate a reply from its message, however early the message was sent", async () => {
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
      "user: two",
      "assistant: re other",
      "user: three",
      "assistant: re other",
    ]);
  });

  it("compacts a session of thousands of messages completely", async () => {
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

  it("refuses a session that does not exist", async () => {
    await using core = await startPlayed();
    expect(await nameOf(core.compact(0, "chat:none"))).toBe("session-not-found");
  });
});

describe("a compaction's place in the queue", () => {
  it("is after the turns that were queued before it, and before later ones", async () => {
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

  it("does not delay the turns of other sessions", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    const done = core.compact();
    const asked = await core.nextAsked();
    await core.talk("other", "chat:b");
    asked.answer("in short");
    expect(await done).toMatchObject({ compacted: true });
  });

  it("orders two compactions one after the other, and the second finds nothing to compact", async () => {
    await using core = await startPlayed();
    await core.talk("one");
    const both = [core.compact(), core.compact()];
    (await core.nextAsked()).answer("in short");
    expect(await Promise.all(both)).toMatchObject([{ compacted: true }, { compacted: false, before: { messages: 0 } }]);
  });

  it("is refused if the session's queue is full", async () => {
    const limits = { ...AMPLE, store: { ...AMPLE.store, turnsPerSession: 1 } };
    await using core = await startPlayed({ settings: { limits } });
    await core.talk("one");
    const first = core.compact();
    await core.start({ text: "two" });
    expect(await nameOf(core.compact())).toBe("session-busy");
    (await core.nextAsked()).answer("in short");
    expect(await first).toMatchObject({ compacted: true });
  });

  it("remains valid however long the summary takes", async () => {
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

  it("limits the number of summaries of an agent at once, and the others follow", async () => {
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
