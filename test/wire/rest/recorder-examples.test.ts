import { afterAll, describe, expect, test } from "vitest";
import { answer, startReceiver } from "#test/channels/receiver.ts";
import { type Example, nameOf, operationsAt, plain, repliesOf, requestsOf } from "#test/harness/examples.ts";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { senders } from "#test/harness/senders.ts";

const operations = operationsAt("/api/v1/agents", "/api/v1/deliveries", "/api/v1/events", "/api/v1/mappings");
const SECRET = senders.github.makeSecret("the-gateway");
const receiver = await startReceiver([answer(200)]);
afterAll(() => receiver[Symbol.asyncDispose]());

const PUSH = '{"ref":"refs/heads/main","pusher":{"name":"ada"},"head_commit":{"message":"Mend the clock"}}';
const BUILD = '{"text":"The nightly build is green.","metadata":{"source":"ci","event":"build"}}';
const DISK = { text: "The disk of db-1 is at 95 %." };

const push = (ref: string) => ({
  match: { "headers.x-github-event": "push", "body.ref": ref },
  message: "{body.pusher.name} pushed {body.head_commit.message}",
  session: "webhook:github",
  model: "fast",
  delivery: "announce" as const,
  verify: { type: "github" as const, secret: SECRET },
});
const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
const alert = { match: { "body.status": ["firing", "resolved"] }, message: "{body.status}" };
const configured = ({
  ref = "refs/heads/main",
  every = "30m",
  fail = undefined as string | undefined,
  delayMs = undefined as number | undefined,
  since = undefined as string | undefined,
} = {}): SomeConfig => ({
  gateway: { announceTo: "ops" },
  channels: { ops: { type: "webhook", url: receiver.url, secret: "a-secret-of-the-channel" } },
  webhooks: {
    token: [{ value: SECRETS.webhookToken, ...(since && { since }) }],
    rateLimit: { maxRequests: 100 },
    mappings: { "github-push": push(ref), alert },
  },
  agents: { main: { backend: "echo", heartbeat: { every }, echo: { fail, delayMs } } },
});

const sendPush = async ({ hooks }: TestGateway): Promise<string> => {
  const headers = { "x-github-event": "push", ...(await senders.github.sign(SECRET, PUSH)) };
  return String((await hooks.named("github-push", PUSH, { token: null, headers })).json.deliveryId);
};
const sendBuild = async ({ hooks }: TestGateway) =>
  (await hooks.wake(BUILD)).json as { deliveryId: string; eventId: string };

type Step = { name: string };
/** A delivery, once this has happened to it. */
const read = async ({ console }: TestGateway, delivery_id: string, happened: string): Promise<object> => {
  for (;;) {
    const { json } = await console.call("deliveries.get", { path: { delivery_id } });
    if ((json.timeline as Step[]).some(({ name }) => name === happened)) return json;
    await new Promise(setImmediate);
  }
};
const readEvent = async ({ console }: TestGateway, event_id: string, status: string): Promise<object> => {
  for (;;) {
    const { json } = await console.call("events.get", { path: { event_id } });
    if (json.status === status) return json;
    await new Promise(setImmediate);
  }
};
const refuse = async ({ hooks, console }: TestGateway): Promise<string> => {
  const { requestId } = await hooks.agent({ message: "Look at the alerts of the last hour." }, { token: null });
  const { json } = await console.call("deliveries.list", { query: { id: requestId } });
  return (json.deliveries as { delivery_id: string }[])[0]?.delivery_id as string;
};
/** An event that is dead, of an agent that is well again. */
const bury = async (gateway: TestGateway): Promise<string> => {
  const { json } = await gateway.hooks.wake(DISK);
  await readEvent(gateway, String(json.eventId), "dead");
  await gateway.reload(configured());
  return String(json.eventId);
};
const FAILING = { every: "20ms", fail: "The backend answered 503 three times." };
const replay = async ({ console }: TestGateway, delivery_id: string, body?: unknown) =>
  (await console.call("deliveries.replay", { path: { delivery_id }, body })).json;
const dryRun = async ({ console }: TestGateway, body: unknown) =>
  (await console.call("mappings.dryRun", { body })).json;
const requests = new Map(requestsOf(operations).map((example) => [nameOf(example), example.value]));
const requestOf = (name: string) => requests.get(name);

type Produce = { config?: Parameters<typeof configured>[0]; by: (gateway: TestGateway) => Promise<unknown> };
const beat = async ({ console }: TestGateway) =>
  (await console.call("agents.beat", { path: { agent_name: "main" } })).json;
const setPaused =
  (operation: "agents.pause" | "agents.resume") =>
  async ({ console }: TestGateway) =>
    (await console.call(operation, { path: { agent_name: "main" } })).json;
const producers: Record<string, Produce> = {
  "agents.beat 200 application/json started": {
    by: async (gateway) => {
      await sendBuild(gateway);
      return beat(gateway);
    },
  },
  "agents.beat 200 application/json nothingWaiting": { by: beat },
  "agents.beat 200 application/json paused": {
    by: async (gateway) => {
      await sendBuild(gateway);
      await setPaused("agents.pause")(gateway);
      return beat(gateway);
    },
  },
  "agents.pause 200 application/json paused": { by: (gateway) => setPaused("agents.pause")(gateway) },
  "agents.resume 200 application/json resumed": { by: (gateway) => setPaused("agents.resume")(gateway) },
  "agents.beat 200 application/json running": {
    config: { delayMs: 60_000 },
    by: async (gateway) => {
      const { json } = await gateway.hooks.wake({ ...DISK, mode: "now" });
      while (
        (await gateway.console.call("events.get", { path: { event_id: String(json.eventId) } })).json.turn_id === null
      )
        await new Promise(setImmediate);
      return beat(gateway);
    },
  },
  "deliveries.list 200 application/json three": {
    by: async (gateway) => {
      await read(gateway, await sendPush(gateway), "turn.completed");
      await sendBuild(gateway);
      await refuse(gateway);
      return (await gateway.console.call("deliveries.list")).json;
    },
  },
  "deliveries.get 200 application/json completed": {
    by: async (gateway) => read(gateway, await sendPush(gateway), "announcement.delivered"),
  },
  "deliveries.get 200 application/json handled": {
    config: { every: "20ms" },
    by: async (gateway) => read(gateway, (await sendBuild(gateway)).deliveryId, "event.handled"),
  },
  "deliveries.get 200 application/json refused": {
    by: async (gateway) => read(gateway, await refuse(gateway), "request.refused"),
  },
  "deliveries.replay 200 application/json turn": {
    by: async (gateway) =>
      replay(gateway, await sendPush(gateway), requestOf("deliveries.replay request application/json edited")),
  },
  "deliveries.replay 200 application/json event": {
    by: async (gateway) =>
      replay(
        gateway,
        (await sendBuild(gateway)).deliveryId,
        requestOf("deliveries.replay request application/json kept"),
      ),
  },
  "deliveries.replay 200 application/json unmatched": {
    by: async (gateway) => {
      const sent = await sendPush(gateway);
      await gateway.reload(configured({ ref: "refs/heads/next" }));
      return replay(gateway, sent);
    },
  },
  "events.list 200 application/json two": {
    config: FAILING,
    by: async (gateway) => {
      await bury(gateway);
      await sendBuild(gateway);
      return (await gateway.console.call("events.list")).json;
    },
  },
  "events.get 200 application/json handled": {
    config: { every: "20ms" },
    by: async (gateway) => readEvent(gateway, (await sendBuild(gateway)).eventId, "handled"),
  },
  "events.replay 200 application/json queued": {
    config: FAILING,
    by: async (gateway) =>
      (await gateway.console.call("events.replay", { path: { event_id: await bury(gateway) } })).json,
  },
  "mappings.list 200 application/json two": {
    config: { since: daysAgo(40) },
    by: async (gateway) => {
      await sendPush(gateway);
      return (await gateway.console.call("mappings.list")).json;
    },
  },
  "mappings.dryRun 200 application/json matched": {
    by: (gateway) => dryRun(gateway, requestOf("mappings.dryRun request application/json one")),
  },
  "mappings.dryRun 200 application/json unmatched": {
    by: (gateway) => dryRun(gateway, requestOf("mappings.dryRun request application/json all")),
  },
};

/** The same, without what depends on where and how fast it happened. */
const settled = (value: unknown): unknown => {
  const text = JSON.stringify(plain(value))
    .replaceAll(/"address":"[\d.]+"/g, '"address":"an address"')
    .replaceAll(/"since":"[\d-]+"/g, '"since":"a day"')
    .replaceAll(/"(waited_ms|latency_ms|ms|left)":\d+/g, '"$1":0');
  const { headers: _, ...rest } = JSON.parse(text) as { headers?: object };
  return rest;
};
const headersOf = (value: unknown): object => {
  const { host: _, "content-length": __, ...headers } = (value as { headers?: Record<string, string> }).headers ?? {};
  return headers;
};

describe("the examples of replies", () => {
  test.each(repliesOf(operations))("$operation $status $type: $name", async (example: Example) => {
    const { config, by } = producers[nameOf(example)] ?? {};
    if (!by) throw new Error("nothing here produces this example");
    await using gateway = await startGateway({ config: configured(config) });
    const got = await by(gateway);
    expect(settled(got)).toEqual(settled(example.value));
    expect(headersOf(got)).toEqual(headersOf(example.value));
  });
});

describe("the examples of requests", () => {
  test("are those that replies are for", () => {
    expect([...requests.keys()]).toEqual([
      "deliveries.replay request application/json kept",
      "deliveries.replay request application/json edited",
      "mappings.dryRun request application/json all",
      "mappings.dryRun request application/json one",
    ]);
  });

  test.each(["deliveries.get", "deliveries.replay", "events.get", "events.replay"] as const)(
    "%s: the id of the example is well formed, and of nobody",
    async (operation) => {
      await using gateway = await startGateway();
      const path = { delivery_id: "dlv_01M7YN0XENG6PX2VW8BN0JQS4T", event_id: "evt_01M7YN1B2AZD4Q9RXC5HT7N3MA" };
      expect((await gateway.console.call(operation, { path })).error).toMatch(/^(delivery|event)-not-found$/);
    },
  );

  test("the filters of lists are taken, all at once", async () => {
    await using gateway = await startGateway();
    const from = "2026-11-21T08:00:00.000Z";
    const id = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
    const filters = {
      surface: "hooks",
      outcome: "failed",
      mapping: "github-push",
      session_id: "webhook:github",
      from,
      id,
    };
    const query = { ...filters, to: "2026-11-21T09:00:00.000Z", limit: "50" };
    expect((await gateway.console.call("deliveries.list", { query })).json).toEqual({
      deliveries: [],
      next_cursor: null,
    });
    const events = await gateway.console.call("events.list", { query: { agent: "main", status: "dead", limit: "50" } });
    expect(events.json).toEqual({ events: [], next_cursor: null });
  });
});
