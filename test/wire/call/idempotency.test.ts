import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, type SomeConfig, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc, RPC } from "#test/harness/rpc.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";

const mappings = {
  one: { match: { "body.kind": "known" }, message: "one" },
  two: { match: {}, message: "two" },
} as const;
const config: SomeConfig = {
  agents: { main: { backend: "echo" }, broken: { backend: "echo", echo: { fail: "no such luck" } } },
  gateway: { defaultAgent: "main" },
  skills: { dirs: [skillsFolder(SUMMARISE)] },
  webhooks: { mappings },
};
const gateway = await shareGateway({ config });

type Headers = Record<string, string>;
let keys = 0;
function freshKey() {
  return { "idempotency-key": `key number ${++keys}` };
}
function resultOf({ json }: Reply) {
  return (json.result ?? json) as Record<string, unknown>;
}
function idOf(reply: Reply) {
  const { turn_id, turnId, eventId } = resultOf(reply);
  return turn_id ?? turnId ?? eventId;
}
function isRepeat(reply: Reply) {
  return reply.headers.get("idempotent-replayed") === "true" || resultOf(reply).replayed === true;
}

/** Every operation that starts work, with one of two bodies. */
const WAYS: [string, (to: TestGateway, text: "hi" | "ho", headers: Headers) => Promise<Reply>][] = [
  ["chat.send", ({ rest }, message, headers) => rest.call("chat.send", { headers, body: { message } })],
  [
    "skills.trigger",
    ({ rest }, user_id, headers) =>
      rest.call("skills.trigger", { headers, body: { skill_id: "summarise-thread", user_id } }),
  ],
  [
    "agent.sendMessage",
    ({ url }, message, headers) => {
      const params = { agentName: "main", message };
      return createRpc(url).send({ jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params }, { headers });
    },
  ],
  ["a wake", ({ hooks }, text, headers) => hooks.wake({ text }, { headers })],
  ["a hook for an agent", ({ hooks }, message, headers) => hooks.agent({ message }, { headers })],
  ["a mapped payload", ({ hooks }, text, headers) => hooks.mapped({ kind: "known", text }, { headers })],
  ["a payload to a mapping", ({ hooks }, text, headers) => hooks.named("one", { kind: "known", text }, { headers })],
];

describe.each(WAYS)("F20: %s with an idempotency key", (_, send) => {
  test("sent five times at once is executed once, and all get its ids", async () => {
    for (let round = 0; round < 3; round++) {
      const before = gateway.gateway.store.stats().sessions;
      const headers = freshKey();
      const replies = await Promise.all(Array.from({ length: 5 }, () => send(gateway, "hi", headers)));
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      expect(new Set(replies.map(idOf)).size).toBe(1);
      expect(replies.filter(isRepeat)).toHaveLength(4);
      expect(gateway.gateway.store.stats().sessions).toBeLessThanOrEqual(before + 1);
    }
  });

  test("sent again is marked as a repeat, and gets the first answer", async () => {
    const headers = freshKey();
    const first = await send(gateway, "hi", headers);
    const again = await send(gateway, "hi", headers);
    expect([isRepeat(first), isRepeat(again)]).toEqual([false, true]);
    const { replayed: _, ...result } = resultOf(again);
    expect(result).toEqual(resultOf(first));
  });

  test("is refused with another body, and the first one stays valid", async () => {
    const headers = freshKey();
    const first = await send(gateway, "hi", headers);
    expect((await send(gateway, "ho", headers)).error).toBe("idempotency-mismatch");
    expect(idOf(await send(gateway, "hi", headers))).toBe(idOf(first));
  });

  test("whose request was refused can be used again", async () => {
    const headers = freshKey();
    expect((await send(gateway, "hi", { ...headers, "content-type": "text/plain" })).status).toBe(415);
    const reply = await send(gateway, "ho", headers);
    expect([reply.status, isRepeat(reply)]).toEqual([200, false]);
  });

  test("is answered also while the gateway refuses new work", async () => {
    await using small = await startGateway({ config: { ...config, limits: { storeBytes: 20_000, events: 1 } } });
    const headers = freshKey();
    const first = await send(small, "hi", headers);
    expect(idOf(first)).toBeDefined();
    let refused: Reply;
    do refused = await send(small, "hi", {});
    while (refused.error === undefined);
    expect(refused.error).toMatch(/full|busy/);
    expect(idOf(await send(small, "hi", headers))).toBe(idOf(first));
  });
});

test.each(WAYS.slice(-4))("%s that is repeated is recorded as a repeat", async (_, send) => {
  const headers = freshKey();
  for (let n = 0; n < 2; n++) await send(gateway, "hi", headers);
  const { json } = await gateway.console.call("deliveries.list", { query: { id: headers["idempotency-key"] } });
  const outcomes = (json.deliveries as { outcome: string }[]).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(["repeated", expect.stringMatching(/queued|running|completed|handled/)]);
});

describe("a repeated chat.send", () => {
  const send = (body: unknown, headers: Headers) => gateway.rest.call("chat.send", { headers, body });

  test("as a stream gets the events of the first turn", async () => {
    const sending = { headers: freshKey(), body: { message: "hi", stream: true } };
    const first = await gateway.rest.stream("chat.send", sending);
    const again = await gateway.rest.stream("chat.send", sending);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect((await again.all()).at(-1)).toEqual((await first.all()).at(-1));
  });

  test("waits for the same reply while its turn runs", async () => {
    const puppet = createPuppet();
    await using played = await startGateway({ makeBackend: () => puppet.backend });
    const sending = { headers: freshKey(), body: { message: "hi" } };
    const sent = Array.from({ length: 5 }, () => played.rest.call("chat.send", sending));
    const turn = await puppet.next();
    turn.say("once");
    turn.end();
    for (const { json } of await Promise.all(sent)) expect(json.reply).toBe("once");
  });

  test("gets the same failure after its turn failed", async () => {
    const headers = freshKey();
    const body = { message: "hi", agent: "broken" };
    const [first, again] = [await send(body, headers), await send(body, headers)];
    expect([again.error, again.problem.turn_id]).toEqual(["turn-failed", first.problem.turn_id]);
    expect([isRepeat(first), isRepeat(again)]).toEqual([false, true]);
  });

  test("is refused if its bytes are in another order, and so are four of five different bodies sent at once", async () => {
    const headers = freshKey();
    await send({ message: "hi" }, headers);
    expect((await send('{ "message": "hi" }', headers)).error).toBe("idempotency-mismatch");
    const other = freshKey();
    const replies = await Promise.all([1, 2, 3, 4, 5].map((n) => send({ message: `hi ${n}` }, other)));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 422, 422, 422, 422]);
  });

  test.each([
    ["400", { message: "hi", surprise: 1 }],
    ["404", { message: "hi", agent: "nobody" }],
    ["409", { message: "hi", session_id: "of the other agent", agent: "main" }],
  ])("may use its key again after a %s", async (status, body) => {
    await send({ message: "hi", session_id: "of the other agent", agent: "broken" }, {});
    const headers = freshKey();
    expect((await send(body, headers)).status).toBe(Number(status));
    const good = await send({ message: "another body" }, headers);
    expect([good.status, isRepeat(good)]).toEqual([200, false]);
  });

  test("may use its key again after its session was full", async () => {
    const puppet = createPuppet();
    await using small = await startGateway({
      config: { limits: { turnsPerSession: 1 } },
      makeBackend: () => puppet.backend,
      replyWaitMs: 10,
    });
    const sending = { headers: freshKey(), body: { message: "hi", session_id: "small" } };
    for (let n = 0; n < 2; n++) await small.rest.call("chat.send", { body: sending.body });
    expect((await small.rest.call("chat.send", sending)).error).toBe("session-busy");
    (await puppet.next()).end();
    await puppet.next();
    const good = await small.rest.call("chat.send", sending);
    expect([good.status, isRepeat(good)]).toEqual([202, false]);
  });
});

describe("an idempotency key", () => {
  test("belongs to one operation: the same key in another operation is another key", async () => {
    const headers = freshKey();
    const ids = [idOf(await gateway.hooks.named("two", {}, { headers }))];
    for (const [, send] of WAYS) ids.push(idOf(await send(gateway, "hi", headers)));
    expect(new Set(ids).size).toBe(WAYS.length + 1);
  });

  test("belongs to one REST key, even if two REST keys have the same name", async () => {
    const mint = async () => String((await gateway.console.call("keys.create", { body: { name: "twins" } })).json.key);
    const headers = freshKey();
    const started = [];
    for (const key of [SECRETS.key, SECRETS.consoleToken, await mint(), await mint()])
      started.push(idOf(await gateway.rest.call("chat.send", { key, headers, body: { message: "hi" } })));
    expect(new Set(started).size).toBe(4);
  });

  test("belongs to the sender of a webhook: a token that replaces another under its name shares its keys", async () => {
    const [old, renewed, other] = ["the-old-token-of-this", "the-new-token-of-this", "the-token-of-another"] as const;
    const token = [old, renewed, { name: "other", value: other }];
    await using several = await startGateway({ config: { webhooks: { token } } });
    const headers = freshKey();
    const sendAs = async (of: string) => idOf(await several.hooks.wake({ text: "hi" }, { token: of, headers }));
    const first = await sendAs(old);
    expect([await sendAs(renewed), (await sendAs(other)) === first]).toEqual([first, false]);
  });

  test.each([
    ["nothing", ""],
    ["256 characters", "x".repeat(256)],
    ["a letter past ASCII", "schlüssel"],
    ["a tab", "a\tb"],
  ])("is refused by its name on every surface if it is %s", async (_, key) => {
    const headers = { "content-type": "application/json", "idempotency-key": key };
    const send = (path: string, token: string, body: object) =>
      exchange(gateway.url, { ...RPC, path }, { ...headers, authorization: `Bearer ${token}` }, JSON.stringify(body));
    for (const { error, problem } of [
      await send("/api/v1/chat/send", SECRETS.key, { message: "hi" }),
      await send("/hooks/wake", SECRETS.webhookToken, { text: "hi" }),
    ])
      expect([error, problem.errors?.[0]?.pointer]).toEqual(["invalid-request", "header:idempotency-key"]);
    const call = { jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: { agentName: "main", message: "hi" } };
    expect((await send("/rpc", SECRETS.rpcToken, call)).json).toMatchObject({ error: { code: -32602 }, id: 1 });
  });

  test("has no effect on operations that start no work", async () => {
    const headers = freshKey();
    for (let n = 0; n < 2; n++) expect(isRepeat(await gateway.rest.call("skills.list", { headers }))).toBe(false);
    const list = await createRpc(gateway.url).call("agent.list", {}, { headers: { "idempotency-key": "" } });
    expect(list.error).toBeUndefined();
  });

  test("has an effect only when work starts: a payload that no mapping matches may be sent again, and then match", async () => {
    await using changing = await startGateway({ config: { webhooks: { mappings: { one: mappings.one } } } });
    const headers = freshKey();
    expect((await changing.hooks.mapped({ kind: "new" }, { headers })).status).toBe(404);
    expect((await changing.hooks.named("one", { kind: "new" }, { headers })).json.message).toBe("no mapping matched");
    const match = { "body.kind": ["known", "new"] };
    await changing.reload({ webhooks: { mappings: { one: { match, message: "one" } } } });
    const started = await changing.hooks.mapped({ kind: "new" }, { headers });
    expect([started.status, isRepeat(started)]).toEqual([200, false]);
  });

  test("returns the first request's work even if the configuration has changed since", async () => {
    await using changing = await startGateway({ config });
    const headers = freshKey();
    const ask = () => changing.hooks.agent({ message: "hi", agent: "broken" }, { headers });
    const event = () => changing.hooks.wake({ text: "hi", agent: "broken" }, { headers });
    const first = [await ask(), await event()];
    await changing.reload({ agents: { main: { backend: "echo" } } });
    expect((await changing.hooks.agent({ message: "hi", agent: "broken" })).error).toBe("agent-not-found");
    expect([(await ask()).json, (await event()).json]).toEqual(first.map(({ json }) => json));
  });
});

describe("an idempotency key of RPC", () => {
  const rpc = createRpc(gateway.url);
  const hello = { agentName: "main", message: "hi" };
  const send = (params: object, headers: Headers = {}) =>
    rpc.call("agent.sendMessage", { ...hello, ...params }, { headers });

  test("is accepted in the header or in the params, and must be the same in both", async () => {
    const { result: first } = await send({}, { "idempotency-key": "one" });
    expect((await send({ idempotencyKey: "one" })).result).toEqual({ ...first, replayed: true });
    const both = await send({ idempotencyKey: "one" }, { "idempotency-key": "one" });
    expect(both.result).toEqual({ ...first, replayed: true });
    const { error } = await send({ idempotencyKey: "one" }, { "idempotency-key": "two" });
    expect(error).toMatchObject({ code: -32602, data: { name: "invalid-params" } });
  });

  test("with a batch is 400, and no call of the batch is executed", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: { ...hello, sessionId: "batched" } };
    const reply = await rpc.send([call], { headers: { "idempotency-key": "three" } });
    expect([reply.status, reply.json]).toMatchObject([400, { error: { code: -32600 }, id: null }]);
    expect(await gateway.gateway.store.getSession("batched")).toBeUndefined();
  });
});
