import { describe, expect, it } from "vitest";
import type { Message, Store } from "#store/store.ts";
import { endTurn, type WorldOptions } from "#test/stores/world.ts";
import { startCore, type TestCore } from "./start-core.ts";

const CALL = { tool: "say", ok: true, ms: 1, at: 1 };
const toolCalls = Array.from({ length: 16 }, () => ({ ...CALL, arguments: "{}", result: "x".repeat(4_000) }));

async function talk({ store, clock }: TestCore, options: WorldOptions, reply: string, calls = toolCalls) {
  await endTurn(store, clock.now(), options, { reply, toolCalls: calls });
}

/** The first letters of the messages on each page. */
async function pagesOf({ core }: TestCore, request: { limit: number; turnId?: string }) {
  const pages: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const of = { turnId: undefined, includeCompacted: false, includeTurns: false, ...request, cursor };
    const { messages, nextCursor } = await core.sessions.read("chat:a", of);
    pages.push(messages.map(({ text }) => text[0]).join(""));
    if (nextCursor === null) return pages;
    expect(pages.length).toBeLessThan(100);
    cursor = nextCursor;
  }
}

describe("a page of messages", () => {
  it("ends once its texts and tool calls have half a million characters", async () => {
    await using core = await startCore();
    for (const letter of "abcdefghijklmnopqrst") await talk(core, { text: letter }, letter.toUpperCase());
    const pages = await pagesOf(core, { limit: 500 });
    expect(pages.join("")).toBe("TtSsRrQqPpOoNnMmLlKkJjIiHhGgFfEeDdCcBbAa");
    expect(pages.length).toBeGreaterThan(2);
  });

  it("of a turn continues after its cursor, and ends", async () => {
    await using core = await startCore();
    await talk(core, { text: "before" }, "Before");
    await talk(core, { text: "message", turnId: "turn_1" }, "Reply");
    await talk(core, { text: "later" }, "Later");
    expect(await pagesOf(core, { limit: 1, turnId: "turn_1" })).toEqual(["R", "m"]);
    expect(await pagesOf(core, { limit: 2, turnId: "turn_1" })).toEqual(["Rm"]);
    expect(await pagesOf(core, { limit: 50, turnId: "turn_2" })).toEqual([""]);
  });

  it("of a turn with long messages ends early", async () => {
    await using core = await startCore();
    await talk(core, { text: "m".repeat(600_000), turnId: "turn_1" }, "R".repeat(600_000));
    expect(await pagesOf(core, { limit: 50, turnId: "turn_1" })).toEqual(["R", "m", ""]);
  });
});

describe("the history of a turn", () => {
  it("MUST be read without tool calls", async () => {
    const read: Message[] = [];
    const wrapStore = (store: Store): Partial<Store> => ({
      readMessages: async (...args) => {
        const messages = await store.readMessages(...args);
        read.push(...messages);
        return messages;
      },
    });
    await using core = await startCore({ wrapStore });
    await talk(core, { text: "first" }, "First");
    const turn = await core.start({ text: "second" });
    const run = await core.scripted.next();
    expect(await run.turn.history()).toMatchObject([{ text: "first" }, { text: "First" }]);
    run.end();
    await core.ended(turn);
    expect(read.map(({ text }) => text)).toEqual(expect.arrayContaining(["First", "first"]));
    expect(read.filter((message) => message.toolCalls !== undefined)).toEqual([]);
  });
});
