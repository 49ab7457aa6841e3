import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { createRest, type Reply } from "#test/harness/rest.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";

const skills = { dirs: [skillsFolder(SUMMARISE)] };
const agents = { main: { backend: "echo" }, broken: { backend: "echo", echo: { fail: "no such luck" } } } as const;
const gateway = await shareGateway({ config: { agents, skills, gateway: { defaultAgent: "main" } } });

let keys = 0;
const freshKey = () => ({ "idempotency-key": `key number ${++keys}` });
const isReplay = ({ headers }: { headers: Headers }) => headers.get("idempotent-replayed") === "true";
const idsOf = ({ json }: Reply) => [json.turn_id, json.message_id, json.session_id];
/** Turns so far: each of these tests' turns has a session of its own. */
const turns = () => gateway.gateway.store.stats().sessions;

describe("a request that is sent again with its Idempotency-Key", () => {
  test.each([
    ["chat.send", { message: "hi" }],
    ["skills.trigger", { skill_id: "summarise-thread" }],
  ] as const)("starts nothing, and gets the same ids: %s", async (operation, body) => {
    const headers = freshKey();
    const first = await gateway.rest.call(operation, { headers, body });
    const before = turns();
    const again = await gateway.rest.call(operation, { headers, body });
    expect(idsOf(again)).toEqual(idsOf(first));
    expect([isReplay(first), isReplay(again)]).toEqual([false, true]);
    expect(again.json.reply).toBe(first.json.reply);
    expect(turns()).toBe(before);
    const session = await gateway.gateway.store.getSession(String(first.json.session_id));
    expect(session?.messageCount).toBe(2);
  });

  test("as a stream gets the events of the first turn", async () => {
    const headers = freshKey();
    const body = { message: "hi", stream: true };
    const first = await gateway.rest.stream("chat.send", { headers, body });
    const again = await gateway.rest.stream("chat.send", { headers, body });
    expect([isReplay(first), isReplay(again)]).toEqual([false, true]);
    expect((await again.all()).at(-1)).toEqual((await first.all()).at(-1));
  });

  test("after its turn failed is told of the same failure", async () => {
    const headers = freshKey();
    const body = { message: "hi", agent: "broken" };
    const [first, again] = [
      await gateway.rest.call("chat.send", { headers, body }),
      await gateway.rest.call("chat.send", { headers, body }),
    ];
    expect([again.error, again.problem.turn_id]).toEqual(["turn-failed", first.problem.turn_id]);
    expect([isReplay(first), isReplay(again)]).toEqual([false, true]);
  });

  test.each([
    ["another message", { message: "other" }],
    ["another field", { message: "hi", user_id: "ada" }],
    ["the same in another order of bytes", '{ "message": "hi" }'],
  ])("but with %s is refused", async (_, body) => {
    const headers = freshKey();
    await gateway.rest.call("chat.send", { headers, body: { message: "hi" } });
    expect((await gateway.rest.call("chat.send", { headers, body })).error).toBe("idempotency-mismatch");
  });
});

describe("an Idempotency-Key", () => {
  test.each([
    ["400", { message: "hi", surprise: 1 }],
    ["404", { message: "hi", agent: "nobody" }],
    ["409", { message: "hi", session_id: "of the other agent", agent: "main" }],
  ])("is free after a %s", async (status, body) => {
    await gateway.rest.call("chat.send", {
      body: { message: "hi", session_id: "of the other agent", agent: "broken" },
    });
    const headers = freshKey();
    expect((await gateway.rest.call("chat.send", { headers, body })).status).toBe(Number(status));
    const good = await gateway.rest.call("chat.send", { headers, body: { message: "another body" } });
    expect([good.status, isReplay(good)]).toEqual([200, false]);
  });

  test("is free after the gateway refused for lack of room", async () => {
    const puppet = createPuppet();
    await using small = await startGateway({
      config: { limits: { turnsPerSession: 1 } },
      makeBackend: () => puppet.backend,
      replyWaitMs: 10,
    });
    const body = { message: "hi", session_id: "small" };
    const headers = freshKey();
    for (let n = 0; n < 2; n++) await small.rest.call("chat.send", { body });
    expect((await small.rest.call("chat.send", { headers, body })).error).toBe("session-busy");
    (await puppet.next()).end();
    await puppet.next();
    const good = await small.rest.call("chat.send", { headers, body });
    expect([good.status, isReplay(good)]).toEqual([202, false]);
  });

  test("belongs to one operation", async () => {
    const headers = freshKey();
    await gateway.rest.call("chat.send", { headers, body: { message: "hi" } });
    const other = await gateway.rest.call("skills.trigger", { headers, body: { skill_id: "summarise-thread" } });
    expect([other.status, isReplay(other)]).toEqual([200, false]);
  });

  test("belongs to one token, also where two have the same name", async () => {
    const mint = async () => String((await gateway.console.call("keys.create", { body: { name: "twins" } })).json.key);
    const tokens = [SECRETS.key, SECRETS.consoleToken, await mint(), await mint()];
    const headers = freshKey();
    const started = [];
    for (const key of tokens) {
      const reply = await gateway.rest.call("chat.send", { key, headers, body: { message: "hi" } });
      expect(isReplay(reply)).toBe(false);
      started.push(reply.json.turn_id);
    }
    expect(new Set(started).size).toBe(tokens.length);
  });

  test.each(["", " ", "tab\there", "é", "x".repeat(256)])("of another form is refused, by name: %j", async (key) => {
    const place = { "idempotency-key": key };
    const reply = await gateway.rest
      .call("chat.send", { headers: place, body: { message: "hi" } })
      .catch((error: Error) => error.message);
    if (typeof reply === "string") expect(reply).toMatch(/ByteString|header/);
    else expect(reply.problem.errors?.[0]?.pointer).toBe("header:idempotency-key");
  });

  test("does nothing where no work starts", async () => {
    const headers = freshKey();
    for (let n = 0; n < 2; n++) expect(isReplay(await gateway.rest.call("skills.list", { headers }))).toBe(false);
  });
});

describe("F20: one request five times at once", () => {
  test("is one turn, and one id for all of them", async () => {
    for (let round = 0; round < 10; round++) {
      const before = turns();
      const sending = { headers: freshKey(), body: { message: "hi" } };
      const replies = await Promise.all(Array.from({ length: 5 }, () => gateway.rest.call("chat.send", sending)));
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      expect(new Set(replies.map(({ json }) => json.turn_id)).size).toBe(1);
      expect(replies.filter(isReplay)).toHaveLength(4);
      expect(turns()).toBe(before + 1);
    }
  });

  test("while its turn runs, waits for the one reply", async () => {
    const puppet = createPuppet();
    await using played = await startGateway({ makeBackend: () => puppet.backend });
    const sending = { headers: freshKey(), body: { message: "hi" } };
    const sent = Array.from({ length: 5 }, () => createRest(played.url, SECRETS.key).call("chat.send", sending));
    const turn = await puppet.next();
    turn.say("once");
    turn.end();
    const replies = await Promise.all(sent);
    expect(replies.map(({ json }) => json.reply)).toEqual(Array.from({ length: 5 }, () => "once"));
    expect(new Set(replies.map(({ json }) => json.turn_id)).size).toBe(1);
  });

  test("with five different bodies is one turn, and four refusals", async () => {
    const headers = freshKey();
    const replies = await Promise.all(
      Array.from({ length: 5 }, (_, n) => gateway.rest.call("chat.send", { headers, body: { message: `hi ${n}` } })),
    );
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 422, 422, 422, 422]);
  });
});
