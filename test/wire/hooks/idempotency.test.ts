import { describe, expect, test } from "vitest";
import { type SomeConfig, shareGateway, startGateway } from "#test/harness/gateway.ts";
import type { HookClient, HookSending } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";

const mappings = {
  one: { match: { "body.kind": "known" }, message: "one" },
  two: { match: {}, message: "two" },
} as const;
const config: SomeConfig = { webhooks: { mappings } };
const gateway = await shareGateway({ config });

let keys = 0;
const freshKey = () => ({ "idempotency-key": `key number ${++keys}` });
const idOf = ({ json }: Reply) => json.turnId ?? json.eventId;
const isRepeat = ({ headers }: Reply) => headers.get("idempotent-replayed") === "true";

const WAYS: [string, (client: HookClient, more: object, sending: HookSending) => Promise<Reply>][] = [
  ["wake", (client, more, sending) => client.wake({ text: "hi", metadata: more }, sending)],
  ["agent", (client, more, sending) => client.agent({ message: "hi", context: more }, sending)],
  ["a mapped payload", (client, more, sending) => client.mapped({ kind: "known", ...more }, sending)],
  ["a payload to a mapping", (client, more, sending) => client.named("one", { kind: "known", ...more }, sending)],
];

describe.each(WAYS)("F20: %s with an idempotency key", (_, send) => {
  test("sent five times at once is done once, and all get its ids", async () => {
    const headers = freshKey();
    const replies = await Promise.all(Array.from({ length: 5 }, () => send(gateway.hooks, {}, { headers })));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(new Set(replies.map(idOf)).size).toBe(1);
    expect(replies.filter(isRepeat)).toHaveLength(4);
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
  });

  test("sent again is marked, and names what is there", async () => {
    const headers = freshKey();
    const first = await send(gateway.hooks, {}, { headers });
    const again = await send(gateway.hooks, {}, { headers });
    expect([isRepeat(first), isRepeat(again)]).toEqual([false, true]);
    expect(again.json).toEqual(first.json);
    const { json } = await gateway.console.call("deliveries.list", { query: { id: headers["idempotency-key"] } });
    expect((json.deliveries as { outcome: string }[]).map(({ outcome }) => outcome)).toEqual([
      "repeated",
      expect.stringMatching(/queued|running|completed|handled/),
    ]);
  });

  test("with another body is 422, and the first counts on", async () => {
    const headers = freshKey();
    const first = await send(gateway.hooks, {}, { headers });
    expect((await send(gateway.hooks, { more: 1 }, { headers })).error).toBe("idempotency-mismatch");
    expect(idOf(await send(gateway.hooks, {}, { headers }))).toBe(idOf(first));
  });

  test("that was refused is free again", async () => {
    await using small = await startGateway({ config: { ...config, limits: { turns: 1, events: 1 } } });
    const [headers, sending] = [freshKey(), { headers: { "content-type": "text/plain" } }];
    expect((await send(small.hooks, {}, { headers: { ...headers, ...sending.headers } })).status).toBe(415);
    const reply = await send(small.hooks, { other: true }, { headers });
    expect([reply.status, isRepeat(reply)]).toEqual([200, false]);
  });

  test("is answered also while the gateway refuses new work", async () => {
    const limits = { storeBytes: 20_000, events: 1 };
    await using small = await startGateway({ config: { ...config, limits } });
    const headers = freshKey();
    const first = await send(small.hooks, {}, { headers });
    expect(first.status).toBe(200);
    let refused: Reply;
    do refused = await send(small.hooks, {}, {});
    while (refused.status === 200);
    expect(refused.status).toBe(503);
    const again = await send(small.hooks, {}, { headers });
    expect([again.status, idOf(again)]).toEqual([200, idOf(first)]);
  });
});

describe("an idempotency key", () => {
  test("belongs to one operation: the same key elsewhere is another", async () => {
    const headers = freshKey();
    const ids = [];
    for (const [, send] of WAYS) ids.push(idOf(await send(gateway.hooks, {}, { headers })));
    ids.push(idOf(await gateway.hooks.named("two", { kind: "known" }, { headers })));
    expect(new Set(ids).size).toBe(WAYS.length + 1);
  });

  test("belongs to the sender: tokens of one name are one that changes its token, those of another name are another", async () => {
    const token = ["the-old-token-of-this", "the-new-token-of-this", { name: "other", value: "the-token-of-another" }];
    await using several = await startGateway({ config: { webhooks: { token } } });
    const headers = freshKey();
    const sendAs = async (of: string) => idOf(await several.hooks.wake({ text: "hi" }, { token: of, headers }));
    const [old, renewed, other] = [
      await sendAs("the-old-token-of-this"),
      await sendAs("the-new-token-of-this"),
      await sendAs("the-token-of-another"),
    ];
    expect(renewed).toBe(old);
    expect(other).not.toBe(old);
  });

  test.each([
    ["nothing", ""],
    ["256 characters", "x".repeat(256)],
    ["a letter past ASCII", "schlüssel"],
    ["a tab", "a\tb"],
  ])("is none with %s: 400, and it names the header", async (_, key) => {
    const { error, problem } = await gateway.hooks.wake({ text: "hi" }, { headers: { "idempotency-key": key } });
    expect([error, problem.errors?.[0]?.pointer]).toEqual(["invalid-request", "header:idempotency-key"]);
  });

  test("counts where work starts: a payload that no mapping matches may come again, and match then", async () => {
    await using changing = await startGateway({ config: { webhooks: { mappings: { one: mappings.one } } } });
    const headers = freshKey();
    expect((await changing.hooks.mapped({ kind: "new" }, { headers })).status).toBe(404);
    expect((await changing.hooks.named("one", { kind: "new" }, { headers })).json.message).toBe("no mapping matched");
    const match = { "body.kind": ["known", "new"] };
    await changing.reload({ webhooks: { mappings: { one: { match, message: "one" } } } });
    const started = await changing.hooks.mapped({ kind: "new" }, { headers });
    expect([started.status, isRepeat(started)]).toEqual([200, false]);
  });

  test("is what the first request came to, also when the configuration has changed since", async () => {
    await using changing = await startGateway({
      config: { agents: { main: { backend: "echo" }, other: { backend: "echo" } }, gateway: { defaultAgent: "main" } },
    });
    const headers = freshKey();
    const ask = () => changing.hooks.agent({ message: "hi", agent: "other" }, { headers });
    const event = () => changing.hooks.wake({ text: "hi", agent: "other" }, { headers });
    const first = [await ask(), await event()];
    await changing.reload({ agents: { main: { backend: "echo" } } });
    expect((await changing.hooks.agent({ message: "hi", agent: "other" })).error).toBe("agent-not-found");
    expect([(await ask()).json, (await event()).json]).toEqual(first.map(({ json }) => json));
  });
});
