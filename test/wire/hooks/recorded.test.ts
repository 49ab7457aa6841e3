import { describe, expect, test } from "vitest";
import type { Store } from "#store/store.ts";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import type { HookClient } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { senders } from "#test/harness/senders.ts";

const secret = senders.github.makeSecret("first");
const mappings = {
  one: { match: { "body.kind": "known" }, message: "one" },
  signed: { match: { "body.kind": "known" }, message: "signed", verify: { type: "github", secret } },
} as const;
const PROXY = { trustedProxies: ["127.0.0.1"] };
function start(config: SomeConfig = {}) {
  return startGateway({ config: { gateway: PROXY, ...config, webhooks: { mappings, ...config.webhooks } } });
}

type Recorded = {
  delivery_id: string;
  outcome: string;
  status: number | null;
  operation: string;
  path: string;
  caller: string | null;
  mapping: string | null;
  sender_id: string | null;
  body: string | null;
  bytes: number;
  headers: Record<string, string>;
  timeline: { name: string; detail: Record<string, unknown> | null }[];
};

/** The delivery of a request, by the id in its answer. */
async function deliveryOf({ console }: TestGateway, { requestId }: Reply): Promise<Recorded | undefined> {
  const { json } = await console.call("deliveries.list", { query: { id: requestId } });
  const [found] = json.deliveries as { delivery_id: string }[];
  if (!found) return undefined;
  const got = await console.call("deliveries.get", { path: { delivery_id: found.delivery_id } });
  return got.json as unknown as Recorded;
}
function stepsOf(delivery: Recorded | undefined) {
  return delivery?.timeline.filter(({ name }) => !/^(request\.received|turn\.|event\.)/.test(name));
}

describe("an accepted webhook is recorded", () => {
  test("with the steps of its processing, in order", async () => {
    await using gateway = await start({ webhooks: { rateLimit: { maxRequests: 10 } } });
    const headers = { "idempotency-key": "deploy-7", "x-github-event": "push" };
    const reply = await gateway.hooks.mapped({ kind: "known" }, { headers });
    const delivery = await deliveryOf(gateway, reply);
    expect(delivery).toMatchObject({
      delivery_id: reply.json.deliveryId,
      operation: "hooks.mapped",
      path: "/hooks",
      caller: "shared",
      mapping: "one",
      sender_id: "deploy-7",
      body: '{"kind":"known"}',
      bytes: 16,
      headers: { "x-github-event": "push", "content-type": "application/json" },
    });
    expect(stepsOf(delivery)?.map(({ name }) => name)).toEqual([
      "token.accepted",
      "rate-limit.counted",
      "mapping.tried",
      "message.rendered",
    ]);
    expect(
      stepsOf(delivery)
        ?.slice(0, 2)
        .map(({ detail }) => detail),
    ).toEqual([{ name: "shared" }, { left: 9, max_requests: 10, window_ms: 60_000 }]);
  });
});

describe("a refused webhook is recorded", () => {
  const strangers: [string, (hooks: HookClient) => Promise<Reply>, object, reason?: string][] = [
    [
      "without a token",
      (hooks) => hooks.wake({ text: "hi" }, { token: null }),
      { name: "token.refused", detail: { reason: "missing" } },
    ],
    [
      "with a wrong one",
      (hooks) => hooks.wake({ text: "hi" }, { token: "wrong" }),
      { name: "token.refused", detail: { reason: "wrong" } },
    ],
    [
      "without a signature",
      (hooks) => hooks.named("signed", {}),
      { name: "signature.refused", detail: { type: "github", reason: "missing" } },
      "The signature is missing or incomplete.",
    ],
    [
      "with a wrong signature",
      (hooks) => hooks.named("signed", {}, { headers: { "x-hub-signature-256": `sha256=${"0".repeat(64)}` } }),
      { name: "signature.refused", detail: { type: "github", reason: "wrong" } },
      "The signature does not match the body.",
    ],
    ["with another method", (hooks) => hooks.send("/wake", "", { method: "GET" }), {}],
    [
      "from a foreign page",
      (hooks) => hooks.wake({ text: "hi" }, { headers: { origin: "https://pages.example" } }),
      {},
    ],
    ["in clear text", (hooks) => hooks.wake({ text: "hi" }, { headers: { "x-forwarded-for": "203.0.113.7" } }), {}],
  ];

  test.each(strangers)("%s: with the reason, and without unauthenticated content", async (_, send, step, reason) => {
    await using gateway = await start();
    const reply = await send(gateway.hooks);
    const delivery = await deliveryOf(gateway, reply);
    expect(delivery).toMatchObject({ outcome: "refused", status: reply.status, caller: null, body: null });
    expect(delivery?.headers["content-length"] ?? "0").toBe(String(delivery?.bytes));
    const steps = stepsOf(delivery) ?? [];
    expect(steps.at(-1)).toEqual({
      at: expect.anything(),
      name: "request.refused",
      detail: { error: reply.error, status: reply.status, detail: reason ?? reply.problem.detail },
    });
    // The answer does not say which.
    if (reason) expect(reply.problem.detail).toBe("The signature is missing, wrong, or too old.");
    if ("name" in step) expect(steps.at(-2)).toMatchObject(step);
  });

  test("with the age of its signature, and the declared size", async () => {
    const slack = senders.slack.makeSecret("first");
    const verify = { type: "slack", secret: slack } as const;
    await using gateway = await start({ webhooks: { mappings: { chat: { match: {}, message: "chat", verify } } } });
    const body = JSON.stringify({ kind: "known" });
    for (const [minutes, reason] of [
      [15, "too-old"],
      [-15, "too-new"],
    ] as const) {
      const headers = await senders.slack.sign(slack, body, { at: Date.now() - minutes * 60_000 });
      const delivery = await deliveryOf(gateway, await gateway.hooks.named("chat", body, { headers }));
      expect(delivery).toMatchObject({ outcome: "refused", body: null, bytes: body.length });
      const { detail } = delivery?.timeline.find(({ name }) => name === "signature.refused") ?? {};
      expect(detail).toMatchObject({ type: "slack", reason, allowed_ms: 300_000 });
      expect(Math.round(Number(detail?.age_ms) / 60_000)).toBe(minutes);
      const refused = delivery?.timeline.find(({ name }) => name === "request.refused")?.detail;
      expect(refused?.detail).toMatch(minutes > 0 ? /too old/ : /in the future/);
    }
  });

  const known: [string, (hooks: HookClient) => Promise<Reply>, string | null][] = [
    ["no JSON", (hooks) => hooks.wake("{"), "{"],
    ["another shape", (hooks) => hooks.wake({ texts: 1 }), '{"texts":1}'],
    ["an unknown agent", (hooks) => hooks.wake({ text: "hi", agent: "x" }), '{"text":"hi","agent":"x"}'],
    ["another media type", (hooks) => hooks.wake("hi", { headers: { "content-type": "text/plain" } }), null],
    ["too much", (hooks) => hooks.wake(" ".repeat(300_000)), null],
    ["an unknown mapping", (hooks) => hooks.named("two", { a: 1 }), '{"a":1}'],
  ];

  test.each(known)(
    "because it was %s: with the sender, and with the body as far as it was read",
    async (_, send, body) => {
      await using gateway = await start();
      const reply = await send(gateway.hooks);
      const delivery = await deliveryOf(gateway, reply);
      expect(delivery).toMatchObject({ outcome: "refused", status: reply.status, caller: "shared", body });
      expect(stepsOf(delivery)?.map(({ name }) => name)).toEqual(["token.accepted", "request.refused"]);
    },
  );

  test("because there were too many, or the store was full", async () => {
    await using limited = await start({ webhooks: { rateLimit: { maxRequests: 1 } } });
    await limited.hooks.wake({ text: "hi" });
    expect(await deliveryOf(limited, await limited.hooks.wake({ text: "hi" }))).toMatchObject({
      status: 429,
      caller: "shared",
    });
    await using full = await start({ limits: { events: 1 } });
    await full.hooks.wake({ text: "hi" });
    const delivery = await deliveryOf(full, await full.hooks.wake({ text: "ho" }));
    expect(delivery).toMatchObject({ status: 503, outcome: "refused", body: '{"text":"ho"}' });
  });

  test("under the name of its mapping; an unknown name from an unauthenticated caller is not stored, as it may be a token", async () => {
    await using gateway = await start();
    const send = (name: string, token: string | null) => gateway.hooks.named(name, {}, token === null ? { token } : {});
    expect(await deliveryOf(gateway, await send("one", null))).toMatchObject({ path: "/hooks/one", mapping: "one" });
    expect(await deliveryOf(gateway, await send("hunter2", null))).toMatchObject({
      path: "/hooks/{name}",
      mapping: null,
    });
    expect(await deliveryOf(gateway, await send("hunter2", ""))).toMatchObject({
      path: "/hooks/hunter2",
      mapping: null,
    });
  });

  test("with only those headers of an unauthenticated caller that identify it", async () => {
    await using gateway = await start();
    const reply = await gateway.hooks.wake({}, { token: null, headers: { "x-padding": "x".repeat(12_000) } });
    expect(JSON.stringify(await deliveryOf(gateway, reply)).length).toBeLessThan(6_000);
  });

  test("and a request to an unknown path is not", async () => {
    await using gateway = await start();
    const reply = await gateway.hooks.send("/a/b", {}, { nowhere: true });
    expect(await deliveryOf(gateway, reply)).toBeUndefined();
  });
});

test("a failing recorder refuses nothing: the answer is the same, and the failure is logged", async () => {
  const wrapStore = (store: Store): Store =>
    new Proxy(store, {
      get: (own, name) => {
        if (name === "recordDelivery") {
          return () => {
            throw new Error("no room for records");
          };
        }
        const method = own[name as keyof Store];
        return typeof method === "function" ? (method as (...args: never[]) => unknown).bind(own) : method;
      },
    });
  await using gateway = await startGateway({ wrapStore, config: { webhooks: { mappings } } });
  const send = () => gateway.hooks.agent({ message: "hi" }, { headers: { "idempotency-key": "a" } });
  expect((await gateway.hooks.wake({ text: "hi" }, { token: null })).status).toBe(401);
  expect((await gateway.hooks.named("one", {})).json.message).toBe("no mapping matched");
  expect((await gateway.hooks.mapped({})).status).toBe(404);
  expect([(await send()).status, (await send()).status]).toEqual([200, 200]);
  const failures = async () => {
    const { text } = await gateway.rest.send("GET", "/metrics", { key: SECRETS.rpcToken });
    return Number(/^gateway_store_failures_total\{operation="record"\} (\d+)$/m.exec(text)?.[1]);
  };
  await expect.poll(failures).toBeGreaterThanOrEqual(4);
  expect(gateway.linesOf("store.failed", { operation: "record" })).toHaveLength(1);
  expect(gateway.linesOf("unexpected.error")).toEqual([]);
});
