import { describe, expect } from "vitest";
import type { Entry, Session } from "#store/store.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, refusal, type World } from "../world.ts";

/** A session with `turns` ended turns: six entries each. */
async function fill(world: World, turns: number, session = "chat:a"): Promise<void> {
  for (let n = 0; n < turns; n++) {
    await world.start({ session, text: `question ${n}` });
    await world.end(await world.claimNext(), { reply: `answer ${n}` });
  }
}

async function pagesOf(world: World, limit: number, agents?: readonly string[]): Promise<Session[][]> {
  const pages: Session[][] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await world.store.listSessions({ agents, limit, cursor });
    pages.push(page.items);
    cursor = page.next;
    if (cursor === undefined) return pages;
  }
}
const TEXTS = {
  "nothing at all": "",
  "control characters": "\u0000\u0001\u001f\r\n\t\u007f\u2028",
  "characters of every size": "a é ü 漢 🙂 👩‍🚀 \ufeff",
  "halves of characters": "\ud83d and \ude42",
  "a text of 300 KiB": "x".repeat(300 * 1024),
  "a text of 100 000 wide characters": "漢".repeat(100_000),
};
function idsOf(sessions: readonly Session[]) {
  return sessions.map(({ sessionId }) => sessionId);
}

export function readingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("reading", () => {
    it("returns undefined for what does not exist", async ({ world }) => {
      const { store } = world;
      expect(await store.getTurn("turn_unknown")).toBeUndefined();
      expect(await store.getSession("chat:unknown")).toBeUndefined();
      expect(await store.getDelivery("dlv_unknown")).toBeUndefined();
      expect(await store.readEntries("chat:unknown", { after: 0, limit: 10 })).toEqual([]);
      expect(await store.readMessages("chat:unknown", { limit: 10 })).toEqual([]);
      expect(await store.listSessions({ limit: 10 })).toEqual({ items: [], next: undefined });
      expect(await store.listSessions({ agents: ["unknown"], limit: 10 })).toEqual({ items: [], next: undefined });
      expect(await store.readUsage({ from: 0, to: Infinity })).toEqual([]);
      expect(await store.listKeys()).toEqual([]);
      await store.ping();
    });

    it("returns the entries after a place, in order, up to a limit", async ({ world }) => {
      await fill(world, 3);
      const all = await world.entries();
      const read = (after: number, limit: number): Promise<Entry[]> =>
        world.store.readEntries("chat:a", { after, limit });
      expect(await read(0, 4)).toEqual(all.slice(0, 4));
      expect(await read(7, 5)).toEqual(all.slice(7, 12));
      expect(await read(17, 10)).toEqual(all.slice(17));
      expect(await read(18, 10)).toEqual([]);
      expect(await read(999, 10)).toEqual([]);
    });

    it("returns no further messages once their texts have the requested number of characters", async ({ world }) => {
      for (let n = 0; n < 4; n++) await world.start({ text: `${n}`.repeat(10) });
      const read = async (characters: number, before?: number) =>
        await world.store.readMessages("chat:a", { limit: 10, characters, ...(before !== undefined && { before }) });
      const texts = async (characters: number) => (await read(characters)).map(({ text }) => text[0]).join("");
      expect(await texts(1)).toBe("3");
      expect(await texts(10)).toBe("3");
      expect(await texts(11)).toBe("32");
      expect(await texts(40)).toBe("3210");
      expect((await read(10, (await read(11)).at(-1)?.seq)).map(({ text }) => text)).toEqual(["1".repeat(10)]);
    });

    it("returns tool calls only if they are requested, and counts their characters", async ({ world }) => {
      const content = "x".repeat(40);
      const toolCalls = [{ tool: "say", ok: true, ms: 1, at: 5, arguments: content, result: content }];
      for (let n = 0; n < 3; n++) {
        await world.start({ text: `question ${n}`, context: `{"n":${n}}` });
        await world.end(await world.claimNext(), { reply: `answer ${n}`, toolCalls });
      }
      const read = async (query: { characters?: number; includeToolCalls?: boolean }) =>
        await world.store.readMessages("chat:a", { limit: 10, ...query });
      const plain = await read({});
      expect(plain.map(({ text, toolCalls }) => [text, toolCalls])).toEqual(
        [2, 1, 0].flatMap((n) => [
          [`answer ${n}`, undefined],
          [`question ${n}`, undefined],
        ]),
      );
      expect(plain[1]?.context).toBe('{"n":2}');
      const whole = await read({ includeToolCalls: true });
      expect(whole).toEqual(plain.map((one) => (one.role === "assistant" ? { ...one, toolCalls } : one)));
      expect(await read({ characters: 95 })).toHaveLength(6);
      expect(await read({ characters: 95, includeToolCalls: true })).toHaveLength(2);
    });

    it("returns complete messages below a place, newest first", async ({ world }) => {
      await fill(world, 2);
      await world.start({ text: "question 2" });
      await world.claimNext();
      const read = async (query: { before?: number; limit: number }) =>
        (await world.store.readMessages("chat:a", query)).map(({ role, text }) => `${role}: ${text}`);
      const all = ["question 2", "answer 1", "question 1", "answer 0", "question 0"];
      const roles = ["user: ", "assistant: ", "user: ", "assistant: ", "user: "];
      const messages = all.map((text, n) => `${roles[n]}${text}`);
      expect(await read({ limit: 10 })).toEqual(messages);
      expect(await read({ limit: 2 })).toEqual(messages.slice(0, 2));
      const [, second] = await world.store.readMessages("chat:a", { limit: 2 });
      expect(await read({ before: second?.seq, limit: 2 })).toEqual(messages.slice(2, 4));
      expect(await read({ before: 1, limit: 2 })).toEqual([]);
      expect(await read({ before: 9_999, limit: 1 })).toEqual(messages.slice(0, 1));
    });

    it("names for each message the entry that has its text", async ({ world }) => {
      await fill(world, 3);
      const entries = await world.entries();
      for (const { seq, messageId, text } of await world.store.readMessages("chat:a", { limit: 10 })) {
        expect(entries[seq - 1]).toMatchObject({ seq, messageId, text });
      }
    });

    it("returns an ended turn unchanged, whatever was added between its entries", async ({ world }) => {
      const { turnId } = await world.start({ text: "first", skillIds: ["a", "b"], model: "fast", caller: "ops" });
      for (let n = 0; n < 40; n++) await world.start({ text: `behind it ${n}` });
      await world.release(await world.claimNext());
      for (let n = 0; n < 40; n++) await world.start({ text: `later ${n}` });
      const claimed = await world.claimNext();
      for (let n = 0; n < 40; n++) await world.start({ text: `later still ${n}` });
      await world.clock.advance(5);
      const endedAt = world.clock.now();
      await world.end(claimed, { reply: "done" });
      const usage = { input: 0, output: 0 };
      const ended = { status: "completed", reply: "done", replyPreview: "done", endedAt, usage };
      expect(await world.store.getTurn(turnId)).toEqual({ ...claimed.turn, ...ended });
    });

    for (const [what, text] of Object.entries(TEXTS)) {
      it(`returns every text unchanged: ${what}`, async ({ world }) => {
        const detail = text.slice(0, 1_000);
        const { turnId } = await world.start({ text, caller: `ci ${detail}`, model: `m ${detail}` });
        const { turnId: failed } = await world.start();
        const claimed = await world.claimNext();
        expect(claimed.message.text).toBe(text);
        await world.end(claimed, { reply: text });
        const turn = await world.store.getTurn(turnId);
        expect(turn).toMatchObject({ reply: text, caller: `ci ${detail}`, model: `m ${detail}` });
        const messages = await world.store.readMessages("chat:a", { limit: 10 });
        expect(messages.map((message) => message.text)).toEqual([text, "hello", text]);
        expect((await world.entries())[0]).toMatchObject({ text });
        await world.end(await world.claimNext(), { status: "failed", error: { name: "turn-failed", detail } });
        expect((await world.store.getTurn(failed))?.error).toEqual({ name: "turn-failed", detail });
      });
    }

    it("counts the messages that can be read", async ({ world }) => {
      await fill(world, 2);
      await world.start();
      await world.end(await world.claimNext(), { status: "failed", reply: "half" });
      await world.start();
      await world.end(await world.claimNext(), { status: "cancelled" });
      await world.start();
      await world.claimNext();
      const messages = await world.store.readMessages("chat:a", { limit: 100 });
      expect((await world.store.getSession("chat:a"))?.messageCount).toBe(messages.length);
      expect(messages).toHaveLength(8);
    });

    it("lists sessions newest first, page by page, of all agents or of some", async ({ world }) => {
      for (let n = 0; n < 7; n++) await world.start({ session: `chat:${n}`, agent: n % 3 === 0 ? "third" : "main" });
      expect((await pagesOf(world, 3)).map(idsOf)).toEqual([
        ["chat:6", "chat:5", "chat:4"],
        ["chat:3", "chat:2", "chat:1"],
        ["chat:0"],
      ]);
      expect((await pagesOf(world, 2, ["third"])).map(idsOf)).toEqual([["chat:6", "chat:3"], ["chat:0"]]);
      await world.start({ session: "chat:x", agent: "fourth" });
      expect((await pagesOf(world, 2, ["third", "unknown", "fourth"])).map(idsOf)).toEqual([
        ["chat:x", "chat:6"],
        ["chat:3", "chat:0"],
      ]);
      expect(await pagesOf(world, 2, [])).toEqual([[]]);
      await world.store.deleteSession("chat:x", world.clock.now());
      expect((await pagesOf(world, 7)).map(idsOf)).toHaveLength(1);
      expect((await pagesOf(world, 100))[0]?.[3]).toEqual(await world.store.getSession("chat:3"));
    });

    it("shows the last message of a session and whether a turn runs, in the session and in lists", async ({
      world,
    }) => {
      await world.start({ session: "chat:a", text: "first" });
      await world.start({ session: "chat:a", text: " second\n time" });
      await world.claimNext();
      await world.start({ session: "chat:b", text: "third" });
      const [b, a] = (await world.store.listSessions({ limit: 2 })).items;
      expect(a).toMatchObject({ turnsQueued: 1, turnsRunning: 1, preview: "second time" });
      expect(b).toMatchObject({ turnsQueued: 1, turnsRunning: 0, preview: "third" });
      expect(await world.store.getSession("chat:a")).toEqual(a);
    });

    it("lists the most recently created sessions first, whichever was used last", async ({ world }) => {
      await fill(world, 1, "chat:old");
      await fill(world, 1, "chat:new");
      await fill(world, 1, "chat:old");
      expect((await pagesOf(world, 10)).map(idsOf)).toEqual([["chat:new", "chat:old"]]);
    });

    it("shows each session once, in pages between which others are created and deleted", async ({ world }) => {
      for (let n = 0; n < 9; n++) await world.start({ session: `chat:${n}` });
      const first = await world.store.listSessions({ limit: 3 });
      await world.start({ session: "chat:later" });
      for (const gone of ["chat:7", "chat:6", "chat:4"]) await world.store.deleteSession(gone, world.clock.now());
      const second = await world.store.listSessions({ limit: 3, cursor: first.next });
      const third = await world.store.listSessions({ limit: 3, cursor: second.next });
      expect([first, second, third].map(({ items }) => idsOf(items))).toEqual([
        ["chat:8", "chat:7", "chat:6"],
        ["chat:5", "chat:3", "chat:2"],
        ["chat:1", "chat:0"],
      ]);
      expect(third.next).toBeUndefined();
    });

    it("refuses a cursor that is not from a page", async ({ world }) => {
      for (const session of ["chat:a", "chat:b"]) await world.start({ session });
      for (const cursor of ["", "nonsense", "0", "-1", "null", "%00", "' or 1=1", "c".repeat(600)]) {
        expect(await refusal(world.store.listSessions({ limit: 1, cursor })), cursor).toBe("invalid-params");
      }
    });

    it("counts the stored records", async ({ world }) => {
      expect(world.store.stats()).toMatchObject({ sessions: 0, turnsQueued: 0, turnsRunning: 0, deliveries: 0 });
      await world.start({ session: "chat:a" });
      await world.start({ session: "chat:a" });
      await world.start({ session: "chat:b" });
      const { turns } = await world.claim();
      expect(world.store.stats()).toMatchObject({ sessions: 2, turnsQueued: 1, turnsRunning: 2 });
      await world.end(turns[0] as (typeof turns)[0]);
      expect(world.store.stats()).toMatchObject({ sessions: 2, turnsQueued: 1, turnsRunning: 1 });
      const { bytes } = world.store.stats();
      await world.start({ session: "chat:c", text: "x".repeat(10_000) });
      expect(world.store.stats().bytes).toBeGreaterThanOrEqual(bytes + 10_000);
    });
  });
}
