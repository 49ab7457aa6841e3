import { describe, expect, it } from "vitest";
import { createManualClock } from "#test/harness/clock.ts";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRest, type Reply } from "#test/harness/rest.ts";
import { senders } from "#test/harness/senders.ts";

const SECRET = senders.github.makeSecret("bursts");
const verify = { type: "github" as const, secret: SECRET };

type Burst = { window?: string; maxWait?: string; take?: "last" | "all" };
function configOf(burst: Burst = {}): SomeConfig {
  const pull = {
    match: {},
    message: "{body.n}: {body.text}",
    session: "webhook:pr:{body.repo}:{body.n}",
    coalesce: { key: "{body.repo}/{body.n}", ...burst },
    verify,
  };
  return { webhooks: { mappings: { pull } } };
}

/** Signed by GitHub's own library, with the id of a delivery. */
async function send({ hooks }: TestGateway, id: string, body: object): Promise<Reply> {
  const text = JSON.stringify(body);
  return hooks.named("pull", text, { token: null, headers: await senders.github.sign(SECRET, text, { id }) });
}

async function start(config: SomeConfig = configOf()) {
  const clock = createManualClock();
  return { clock, gateway: await startGateway({ config, clock }) };
}

async function replyOf({ rest, adminKey }: TestGateway, turnId: unknown): Promise<unknown> {
  const events = await (await rest.stream("turns.events", { path: { turn_id: String(turnId) }, key: adminKey })).all();
  return events.at(-1)?.data.reply;
}

type Turn = { turn_id: string; session_id: string; status: string };
async function turnsOf({ console }: TestGateway): Promise<Turn[]> {
  return (await console.call("turns.list")).json.turns as Turn[];
}

type Delivery = {
  outcome: string;
  turn_id: string | null;
  timeline: { name: string; detail: Record<string, unknown> }[];
};
async function deliveryOf({ console }: TestGateway, { json }: Reply): Promise<Delivery> {
  const path = { delivery_id: String(json.deliveryId) };
  return (await console.call("deliveries.get", { path })).json as unknown as Delivery;
}
function stepOf({ timeline }: Delivery, name: string) {
  return timeline.find((step) => step.name === name)?.detail;
}

describe("a burst", () => {
  it("of 50 signed webhooks with 5 keys becomes 5 turns, each with the last message", async () => {
    const { clock, gateway } = await start();
    await using _ = gateway;
    const replies: Reply[] = [];
    for (let i = 0; i < 50; i++) {
      replies.push(await send(gateway, `id-${i}`, { repo: "acme/site", n: i % 5, text: `push ${i}` }));
      await clock.advance(40);
    }
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    const turns = replies.slice(0, 5).map(({ json }) => json.turnId);
    expect(replies.map(({ json }) => json.turnId)).toEqual(Array.from({ length: 10 }, () => turns).flat());
    expect(replies.map(({ json }) => json.coalesced === true)).toEqual(replies.map((_, i) => i >= 5));
    expect((await turnsOf(gateway)).map(({ status }) => status)).toEqual(Array(5).fill("queued"));
    await clock.advance(30_000);
    for (const [n, turn] of turns.entries()) expect(await replyOf(gateway, turn)).toBe(`${n}: push ${45 + n}`);
    const sessions = (await turnsOf(gateway)).map(({ session_id }) => session_id).sort();
    expect(sessions).toEqual([0, 1, 2, 3, 4].map((n) => `webhook:pr:acme~2fsite:${n}`));
  });

  it("with `take: all` has all messages in order", async () => {
    const { clock, gateway } = await start(configOf({ take: "all" }));
    await using _ = gateway;
    const replies: Reply[] = [];
    for (const text of ["one", "two", "three"]) replies.push(await send(gateway, text, { repo: "r", n: 1, text }));
    await clock.advance(30_000);
    expect(await replyOf(gateway, replies[0]?.json.turnId)).toBe("1: one\n\n1: two\n\n1: three");
  });

  it("that never ends starts a turn at the end of `maxWait`, again and again", async () => {
    const { clock, gateway } = await start(configOf({ window: "2s", maxWait: "5s" }));
    await using _ = gateway;
    const opened: number[] = [];
    for (let second = 0; second < 24; second++) {
      const { json } = await send(gateway, `id-${second}`, { repo: "r", n: 1, text: `at ${second}` });
      if (json.coalesced !== true) opened.push(second);
      await clock.advance(1_000);
    }
    await clock.advance(5_000);
    expect(opened.length).toBeGreaterThanOrEqual(4);
    for (const [index, second] of opened.entries())
      if (index > 0) expect(second - (opened[index - 1] ?? 0)).toBeLessThanOrEqual(6);
    expect((await turnsOf(gateway)).map(({ status }) => status)).toEqual(opened.map(() => "completed"));
  });

  it("merges nothing without a value for its key: each request has a turn and a session of its own, at once", async () => {
    const { gateway } = await start();
    await using _ = gateway;
    const replies = [
      await send(gateway, "a", { repo: "r", text: "no number" }),
      await send(gateway, "b", { repo: "r", text: "no number" }),
      await send(gateway, "c", { repo: "r", n: "", text: "an empty one" }),
    ];
    expect(replies.map(({ json }) => json.coalesced)).toEqual([undefined, undefined, undefined]);
    for (const { json } of replies) expect(await replyOf(gateway, json.turnId)).toContain(": ");
    expect(new Set(replies.map(({ json }) => json.sessionId)).size).toBe(3);
    const delivery = await deliveryOf(gateway, replies[0] as Reply);
    expect(stepOf(delivery, "message.rendered")).toMatchObject({ without: ["body.n"] });
    expect(stepOf(delivery, "group.opened")).toBeUndefined();
  });

  it("merges no requests for different sessions, whose agent would read the other message", async () => {
    const config = configOf();
    const pull = {
      match: {},
      message: "{body.text}",
      session: "webhook:pr:{body.n}",
      coalesce: { key: "{body.k}" },
      verify,
    };
    const { clock, gateway } = await start({ ...config, webhooks: { mappings: { pull } } });
    await using _ = gateway;
    const sent = [];
    for (const [i, n] of [1, 2, undefined, 1].entries())
      sent.push(await send(gateway, `id-${i}`, { k: "same", n, text: `text ${i}` }));
    const turns = sent.map(({ json }) => json.turnId);
    expect(new Set(turns).size).toBe(3);
    expect(turns[3]).toBe(turns[0]);
    await clock.advance(30_000);
    expect(await replyOf(gateway, turns[0])).toBe("text 3");
    expect(await replyOf(gateway, turns[1])).toBe("text 1");
  });

  it("counts a sender's retry as a repeat, with the first answer", async () => {
    const { clock, gateway } = await start(configOf({ take: "all" }));
    await using _ = gateway;
    const body = (text: string) => ({ repo: "r", n: 1, text });
    const first = await send(gateway, "a", body("one"));
    const joined = await send(gateway, "b", body("two"));
    expect([first.json.message, joined.json.message]).toEqual(["turn started", "joined an open turn"]);
    expect(joined.json.deliveryId).not.toBe(first.json.deliveryId);
    const again = async () => [await send(gateway, "a", body("one")), await send(gateway, "b", body("two"))];
    const check = (replies: Reply[]) => {
      expect(replies.map(({ json }) => json)).toEqual([first.json, joined.json]);
      expect(replies.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual(["true", "true"]);
    };
    check(await again());
    await clock.advance(30_000);
    check(await again());
    expect(await replyOf(gateway, first.json.turnId)).toBe("1: one\n\n1: two");
  });

  it("stays open through a reload, and closes by its own times", async () => {
    const { clock, gateway } = await start();
    await using _ = gateway;
    const first = await send(gateway, "a", { repo: "r", n: 1, text: "before" });
    await gateway.reload({
      ...configOf(),
      agents: { main: { backend: "echo" }, other: { backend: "echo" } },
      gateway: { defaultAgent: "main" },
    });
    const joined = await send(gateway, "b", { repo: "r", n: 1, text: "after" });
    expect(joined.json).toMatchObject({ coalesced: true, turnId: first.json.turnId });
    await clock.advance(30_000);
    expect(await replyOf(gateway, first.json.turnId)).toBe("1: after");
  });
});

describe("a hostile body", () => {
  it.each([
    ["the session of a person", "agent:main:main", "webhook:pr:r:agent~3amain~3amain"],
    ["another path", "../x", "webhook:pr:r:..~2fx"],
    ["control characters", "1\r\n\u0000", "webhook:pr:r:1~0d~0a~00"],
    ["a very long name", "x".repeat(100_000), expect.stringMatching(/^webhook:pr:r:x{40}~~[0-9a-f]{16}$/)],
    ["an object", { toString: "x" }, "webhook:pr:r:~7b~22toString~22~3a~22x~22~7d"],
    ["a placeholder", "{headers.cookie}", "webhook:pr:r:~7bheaders.cookie~7d"],
  ])("stays in the prefix of the mapping with %s", async (_, n, sessionId) => {
    const { gateway } = await start();
    await using __ = gateway;
    const { status, json } = await send(gateway, "a", { repo: "r", n, text: "x" });
    expect([status, json.sessionId]).toEqual([200, sessionId]);
  });
});

describe("the flight recorder", () => {
  it("links the requests of a burst, and finds those that joined", async () => {
    const { clock, gateway } = await start();
    await using _ = gateway;
    const first = await send(gateway, "a", { repo: "r", n: 1, text: "one" });
    const joined = await send(gateway, "b", { repo: "r", n: 1, text: "two" });
    await clock.advance(30_000);
    await replyOf(gateway, first.json.turnId);
    const opener = await deliveryOf(gateway, first);
    expect(opener.outcome).toBe("completed");
    expect(stepOf(opener, "message.rendered")).toMatchObject({
      mapping: "pull",
      session: "webhook:pr:r:1",
      group_key: "r/1",
      message: "1: two",
    });
    expect(stepOf(opener, "group.joined")).toMatchObject({ delivery_id: joined.json.deliveryId, requests: 2 });
    expect(stepOf(opener, "group.closed")).toMatchObject({ requests: 2 });
    const other = await deliveryOf(gateway, joined);
    expect([other.outcome, other.turn_id]).toEqual(["coalesced", first.json.turnId]);
    expect(stepOf(other, "request.coalesced")).toMatchObject({
      turn_id: first.json.turnId,
      delivery_id: first.json.deliveryId,
    });
    const { json } = await gateway.console.call("deliveries.list", { query: { outcome: "coalesced" } });
    expect(
      (json.deliveries as { delivery_id: string; status: number }[]).map(({ delivery_id, status }) => [
        delivery_id,
        status,
      ]),
    ).toEqual([[joined.json.deliveryId, 200]]);
  });

  it("shows no key and no message without recorded bodies", async () => {
    const { gateway } = await start({ ...configOf(), recorder: { bodies: false } });
    await using _ = gateway;
    const reply = await send(gateway, "a", { repo: "r", n: 1, text: "one" });
    expect(stepOf(await deliveryOf(gateway, reply), "message.rendered")).toEqual({
      mapping: "pull",
      characters: 6,
      session: "webhook:pr:r:1",
    });
  });

  it("shows no secret of the configuration that a body repeats as a key", async () => {
    const clock = createManualClock();
    await using gateway = await startGateway({ config: configOf(), clock, hidden: ["a-secret-of-the-store"] });
    const replies = [];
    for (const id of ["a", "b"])
      replies.push(await send(gateway, id, { repo: "r", n: "a-secret-of-the-store", text: id }));
    expect(replies[1]?.json).toMatchObject({ coalesced: true, turnId: replies[0]?.json.turnId });
    for (const reply of replies) {
      expect(reply.json.sessionId).toMatch(/^webhook:pr:r:~~[0-9a-f]{16}$/);
      const { timeline } = await deliveryOf(gateway, reply);
      expect(stepOf({ outcome: "", turn_id: "", timeline }, "message.rendered")?.group_key).toBe("r/[hidden]");
    }
  });

  it("replays a request as a new one, which joins the open turn", async () => {
    const { clock, gateway } = await start();
    await using _ = gateway;
    const first = await send(gateway, "a", { repo: "r", n: 1, text: "one" });
    await send(gateway, "b", { repo: "r", n: 1, text: "two" });
    const path = { delivery_id: String(first.json.deliveryId) };
    const replay = await gateway.console.call("deliveries.replay", { path, body: {} });
    expect(replay.json).toMatchObject({
      outcome: "queued",
      message: "joined an open turn",
      turn_id: first.json.turnId,
    });
    expect(replay.json.delivery_id).not.toBe(first.json.deliveryId);
    await clock.advance(30_000);
    expect(await replyOf(gateway, first.json.turnId)).toBe("1: one");
  });
});

describe("a dry run", () => {
  async function planOf({ console }: TestGateway, body: object) {
    const { json } = await console.call("mappings.dryRun", { body: { name: "pull", body } });
    return (json.mappings as { turn: Record<string, unknown> }[])[0]?.turn;
  }
  const body = { repo: "r", n: 1, text: "one" };

  it("shows the open turn that the request would join, and changes nothing", async () => {
    const { clock, gateway } = await start();
    await using _ = gateway;
    const free = { key: "r/1", window_ms: 30_000, max_wait_ms: 300_000, take: "last", joins: null };
    expect((await planOf(gateway, body))?.coalesce).toEqual(free);
    const first = await send(gateway, "a", body);
    await clock.advance(10_000);
    const closesAt = new Date(clock.now() + 20_000).toISOString();
    const joins = { turn_id: first.json.turnId, requests: 1, closes_at: closesAt };
    for (let i = 0; i < 2; i++)
      expect(await planOf(gateway, body)).toMatchObject({ session_id: "webhook:pr:r:1", coalesce: { ...free, joins } });
    expect((await planOf(gateway, { ...body, n: 2 }))?.coalesce).toEqual({ ...free, key: "r/2" });
    await clock.advance(20_000);
    expect((await planOf(gateway, body))?.coalesce).toEqual(free);
  });
});

describe("the metric of merged webhooks", () => {
  it("counts joins by mapping, not repeats", async () => {
    const { gateway } = await start();
    await using _ = gateway;
    const { url, rpcToken } = gateway;
    for (const id of ["a", "b", "c", "c"]) await send(gateway, id, { repo: "r", n: 1, text: id });
    const { text } = await createRest(url, rpcToken).call("ops.metrics");
    expect(text).toContain('gateway_webhooks_coalesced_total{mapping="pull"} 2');
  });
});
