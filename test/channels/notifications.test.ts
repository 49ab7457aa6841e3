import { Ajv2020 } from "ajv/dist/2020.js";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { createManualClock } from "#test/harness/clock.ts";
import { type SomeConfig, type Start, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import document from "../../generated/openapi.json" with { type: "json" };
import { answer, type Behaviour, hang, type Received, startReceiver } from "./receiver.ts";

const SECRET = `whsec_${Buffer.from("the secret of an endpoint").toString("base64")}`;
const ajv = new Ajv2020({ strict: false, coerceTypes: true }).addSchema(document, "openapi");

type Sent = { type: keyof typeof document.webhooks; timestamp: string; data: Record<string, unknown> };

/** The event of a request, verified with the package `standardwebhooks` and validated against the contract. */
function eventOf({ body, headers }: Received): Sent {
  const event = new Webhook(SECRET).verify(String(body), headers) as Sent;
  const where = `openapi#/webhooks/${event.type}/post`;
  const { parameters } = document.webhooks[event.type].post as { parameters: { name?: string; $ref?: string }[] };
  for (const [n, parameter] of parameters.entries()) {
    const at = parameter.$ref?.split("/").at(-1);
    const schema = at ? `openapi#/components/parameters/${at}/schema` : `${where}/parameters/${n}/schema`;
    const names = document.components.parameters as Record<string, { name: string }>;
    const value = headers[at ? (names[at]?.name ?? "") : (parameter.name ?? "")];
    const validate = ajv.compile({ type: "object", required: ["value"], properties: { value: { $ref: schema } } });
    expect(validate({ value }), `${at ?? parameter.name}: ${value}`).toBe(true);
  }
  const validate = ajv.compile({ $ref: `${where}/requestBody/content/application~1json/schema` });
  expect(validate(event), `${event.type}: ${JSON.stringify(validate.errors)}`).toBe(true);
  return event;
}

type Endpoint = NonNullable<SomeConfig["notify"]>[string];

/** A gateway whose endpoint `ops` is a server with this behaviour. */
async function startWith(
  behave: readonly Behaviour[],
  { config, ...options }: Start = {},
  endpoint: Partial<Endpoint> = {},
) {
  const receiver = await startReceiver(behave);
  const ops = { url: `${receiver.url}/events`, secret: SECRET, events: ["turn.*"], ...endpoint };
  const gateway = await startGateway({ ...options, config: { ...config, notify: { ops, ...config?.notify } } });
  const events = () => receiver.requests.map(eventOf);
  return {
    ...gateway,
    receiver,
    ops,
    events,
    send: async (message: string, more: object = {}) =>
      (await gateway.rest.call("chat.send", { body: { message, ...more } })).json,
    list: async (query: Record<string, string> = {}, { console } = gateway as TestGateway) =>
      (await console.call("notifications.list", { query })).json.notifications as Record<string, unknown>[],
    /** The first event of this type, as soon as it arrives. */
    event: async (type: string): Promise<Sent> => {
      for (;;) {
        const found = events().find((event) => event.type === type);
        if (found) return found;
        await receiver.received(receiver.requests.length + 1);
      }
    },
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

describe("each event", () => {
  const echo = { backend: "echo" } as const;
  const agents = {
    main: echo,
    broken: { ...echo, echo: { fail: "no such luck" } },
    slow: { ...echo, echo: { delayMs: 60_000 } },
    leaving: echo,
  };

  /** The endpoint gets every event. */
  const startAll = (config: SomeConfig = {}) =>
    startWith([answer(200)], { config: { agents, gateway: { defaultAgent: "main" }, ...config } }, { events: ["*"] });

  it("MUST be verified by standardwebhooks and have the form of the contract: the ends of turns", async () => {
    await using gateway = await startAll();
    const { turn_id } = await gateway.send("hi");
    const completed = await gateway.event("turn.completed");
    expect(completed.data).toMatchObject({
      turnId: turn_id,
      agent: "main",
      status: "completed",
      surface: "rest",
      caller: "tests",
      error: null,
    });
    expect(completed.timestamp).toBe(completed.data.endedAt);
    expect(completed.data).not.toHaveProperty("reply");
    await gateway.send("hi", { agent: "broken" });
    expect((await gateway.event("turn.failed")).data.error).toMatchObject({ name: "turn-failed" });
    const { events } = await gateway.rest.stream("chat.send", { body: { message: "hi", agent: "slow" } });
    const slow = String((await events.next()).value?.data.turn_id);
    await events.return(undefined);
    await gateway.console.call("turns.cancel", { path: { turn_id: slow } });
    expect((await gateway.event("turn.cancelled")).data).toMatchObject({ turnId: slow, status: "cancelled" });
    const ids = gateway.receiver.requests.map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain(String(turn_id).replace("turn_", "ntf_"));
  });

  it("MUST be verified by standardwebhooks and have the form of the contract: a failing agent, and the health", async () => {
    await using gateway = await startAll();
    await gateway.send("hi", { agent: "broken" });
    expect((await gateway.event("agent.failing")).data).toMatchObject({ agent: "broken" });
    expect((await gateway.event("health.changed")).data).toMatchObject({ status: "degraded" });
    const healed = { ...agents, broken: echo };
    await gateway.reload({ agents: healed, gateway: { defaultAgent: "main" }, notify: { ops: gateway.ops } });
    await gateway.send("hi", { agent: "broken" });
    expect((await gateway.event("agent.recovered")).data).toMatchObject({ agent: "broken" });
  });

  it("MUST be verified by standardwebhooks and have the form of the contract: dead replies and events", async () => {
    await using refusing = await startReceiver([answer(410)]);
    const channels = { team: { type: "webhook", url: `${refusing.url}/`, secret: SECRET } } as const;
    await using gateway = await startAll({ channels });
    const { json } = await gateway.hooks.agent({ message: "hi", delivery: "announce", channel: "team" });
    expect((await gateway.event("announcement.dead")).data).toMatchObject({
      turnId: json.turnId,
      channel: "team",
      reason: "410 Gone",
    });
    const { json: woken } = await gateway.hooks.wake({ text: "hi", agent: "leaving" });
    const { leaving: _, ...others } = agents;
    await gateway.reload({
      agents: others,
      channels,
      gateway: { defaultAgent: "main" },
      notify: { ops: gateway.ops },
    });
    expect((await gateway.event("event.dead")).data).toMatchObject({ eventId: woken.eventId, agentName: "leaving" });
  });

  it("MUST be verified by standardwebhooks and have the form of the contract: a key that expires", async () => {
    const expiresAt = new Date(Date.now() + 3 * 86_400_000).toISOString();
    const keys = [{ name: "support desk", key: "a-key-that-expires-soon", expiresAt }];
    await using gateway = await startAll({ gateway: { defaultAgent: "main", rest: { auth: { keys } } } });
    expect((await gateway.event("key.expiring")).data).toEqual({ keyId: null, name: "support desk", expiresAt });
  });

  it("MUST be verified by standardwebhooks and have the form of the contract: a budget", async () => {
    const daily = { per: "day", tokens: 10, warnAt: 0.5 } as const;
    await using gateway = await startAll({ budgets: { daily } });
    const reached = { budgetName: "daily", unit: "tokens", limit: 10 };
    await gateway.send("Good morning");
    expect((await gateway.event("budget.warning")).data).toMatchObject({ ...reached, used: 6 });
    await gateway.send("Good morning");
    expect((await gateway.event("budget.exceeded")).data).toMatchObject({ ...reached, used: 12 });
  });

  it("goes to the endpoints that list it, and to those with agents only if it is about one of them", async () => {
    await using other = await startReceiver();
    const narrow = {
      url: `${other.url}/`,
      secret: SECRET,
      events: ["turn.completed"],
      agents: ["main"],
      content: "reply",
    };
    await using gateway = await startWith(
      [answer(200)],
      { config: { agents, notify: { narrow }, gateway: { defaultAgent: "main" } } } as Start,
      { events: ["turn.failed"] },
    );
    await gateway.send("for both");
    await gateway.send("for none", { agent: "leaving" });
    await gateway.send("a failure", { agent: "broken" });
    await Promise.all([other.received(1), gateway.receiver.received(1)]);
    await gateway.send("the last");
    await other.received(2);
    expect(other.requests.map((request) => eventOf(request).data.reply)).toEqual(["for both", "the last"]);
    expect(gateway.events().map(({ type, data }) => [type, data.agent])).toEqual([["turn.failed", "broken"]]);
  });
});

describe("an endpoint that fails", () => {
  it("gets an event again with the same id, body and growing pauses, until it accepts", async () => {
    const clock = createManualClock();
    const failures = Array.from({ length: 5 }, () => answer(500));
    await using gateway = await startWith([...failures, answer(200)], { clock });
    const { turn_id } = await gateway.send("hi");
    const pauses: number[] = [];
    for (let n = 1; n <= 5; n++) {
      await gateway.receiver.received(n);
      let shown = (await gateway.list())[0];
      while (shown?.attempts !== n) [shown] = await gateway.list();
      expect(shown).toMatchObject({ state: "retrying", status: 500, reason: "HTTP 500" });
      const pause = Date.parse(String(shown.next_attempt_at)) - clock.now();
      pauses.push(pause);
      await clock.block(pause);
    }
    await gateway.receiver.received(6);
    while ((await gateway.list({ state: "delivered" })).length === 0);
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
    expect(pauses[4]).toBeGreaterThanOrEqual(8 * (pauses[0] ?? 0));
    const { requests } = gateway.receiver;
    expect(new Set(requests.map(({ body }) => String(body))).size).toBe(1);
    expect([...new Set(requests.map(({ headers }) => headers["webhook-id"]))]).toEqual([
      String(turn_id).replace("turn_", "ntf_"),
    ]);
    expect(requests.map(eventOf)).toHaveLength(6);
  });

  it("does not delay other endpoints when it hangs", async () => {
    await using other = await startReceiver();
    const quick = { url: `${other.url}/`, secret: SECRET, events: ["turn.*"] };
    await using gateway = await startWith([hang], { config: { notify: { quick } } });
    for (let n = 1; n <= 10; n++) {
      await gateway.send("hi");
      await other.received(n);
    }
    expect((await gateway.list({ endpoint: "quick", state: "waiting" })).length).toBeLessThanOrEqual(1);
    expect((await gateway.list({ endpoint: "ops" })).map(({ state }) => state)).toEqual(Array(10).fill("waiting"));
  });

  it("MUST not have its redirects followed: F32", async () => {
    await using inside = await startReceiver();
    await using gateway = await startWith([answer(302, { location: `${inside.url}/latest/meta-data` })]);
    await gateway.send("hi");
    while ((await gateway.list({ state: "retrying" })).length === 0);
    expect((await gateway.list())[0]).toMatchObject({
      status: 302,
      reason: "HTTP 302, and redirects are not followed",
    });
    expect(inside.connections()).toBe(0);
  });

  it("is stopped by 410 until its configuration changes, and health, the log and metrics show it", async () => {
    await using gateway = await startWith([answer(410), answer(200)]);
    await gateway.send("the first");
    await gateway.logged("notify.stopped", { endpoint: "ops" });
    await gateway.send("the second");
    expect(await healthOf(gateway)).toMatchObject({
      status: "degraded",
      detail: expect.stringMatching(/^Stopped: .*410/),
    });
    const { text: metrics } = await gateway.rest.call("ops.metrics", { key: gateway.rpcToken });
    expect(metrics).toMatch(/gateway_notif\w+\{[^}]*endpoint="ops"/);
    expect((await gateway.list()).map(({ state }) => state)).toEqual(["waiting", "waiting"]);
    expect(gateway.receiver.requests).toHaveLength(1);
    const [test] = [await gateway.console.call("notifications.test", { path: { name: "ops" } })];
    expect(test.json).toMatchObject({ delivered: true, status: 200 });
    await gateway.reload({ notify: { ops: { ...gateway.ops, url: `${gateway.receiver.url}/moved` } } });
    while ((await gateway.list({ state: "delivered" })).length < 2);
    while ((await healthOf(gateway))?.status !== "ok");
    const ids = gateway.receiver.requests.map(({ headers }) => headers["webhook-id"]);
    expect(ids[2]).toBe(ids[0]);
  });

  it("ends the loop of events that start turns", async () => {
    await using gateway = await startWith([answer(200)]);
    await gateway.hooks.agent({ message: "hi" }, { headers: { "x-gateway-hops": "2" } });
    await gateway.receiver.received(1);
    expect(gateway.receiver.requests[0]?.headers["x-gateway-hops"]).toBe("3");
    await gateway.hooks.agent({ message: "hi" }, { headers: { "x-gateway-hops": "3" } });
    while ((await gateway.list({ state: "failed" })).length === 0);
    expect((await gateway.list({ state: "failed" }))[0]).toMatchObject({ reason: expect.stringContaining("loop") });
    expect(gateway.receiver.requests).toHaveLength(1);
  });
});

it("the secret of an endpoint does not appear in lists, logs, views of the configuration, metrics, health or errors", async () => {
  await using gateway = await startWith([answer(500)]);
  await gateway.send("hi");
  while ((await gateway.list({ state: "retrying" })).length === 0);
  const { console, rest, rpcToken } = gateway;
  const texts = [
    await console.call("notifications.list", {}),
    await console.call("notifications.test", { path: { name: "ops" } }),
    await console.call("notifications.test", { path: { name: "opss" } }),
    await console.call("notifications.replay", { path: { notification_id: "ntf_none.ops" } }),
    await console.call("config.get", {}),
    await rest.call("ops.metrics", { key: rpcToken }),
  ].map(({ text }) => text);
  texts.push(JSON.stringify(await createRpc(gateway.url).call("system.health")), JSON.stringify(gateway.logs));
  const bare = SECRET.slice("whsec_".length);
  for (const text of texts) expect(text).not.toMatch(new RegExp(`${SECRET}|${bare}|the secret of an endpoint`));
});

async function healthOf({ url }: TestGateway) {
  const { result } = await createRpc(url).call("system.health");
  return result.parts.find(({ name }) => name === "notify.ops");
}
