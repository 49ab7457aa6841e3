import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "../wire/ws/socket.ts";
import { answer, type Behaviour, hang, startReceiver } from "./receiver.ts";

const SECRET = `whsec_${Buffer.from("the secret of a channel").toString("base64")}`;

/** A gateway whose channel `ops` sends to a server with this behaviour. */
async function startWith(behave: readonly Behaviour[], config: SomeConfig = {}) {
  const receiver = await startReceiver(behave);
  const channels = { ops: { type: "webhook", url: `${receiver.url}/in`, secret: SECRET } } as const;
  const gateway = await startGateway({ config: { channels, ...config } });
  return {
    ...gateway,
    receiver,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

async function timelineOf({ console }: TestGateway, deliveryId: unknown) {
  const { json } = await console.call("deliveries.get", { path: { delivery_id: String(deliveryId) } });
  return (json.timeline as { name: string; detail: Record<string, unknown> | null }[]).filter(({ name }) =>
    name.startsWith("announcement."),
  );
}

describe("an announced reply", () => {
  it("reaches the named channel, signed, and its delivery shows that", async () => {
    await using gateway = await startWith([answer(200)]);
    const { json } = await gateway.hooks.agent({ message: "Three alerts.", delivery: "announce", channel: "ops" });
    await gateway.logged("announcement.delivered");
    const [request] = gateway.receiver.requests;
    const event = new Webhook(SECRET).verify(String(request?.body), request?.headers ?? {});
    const { turnId, sessionId, deliveryId } = json;
    expect(event).toMatchObject({
      type: "turn.completed",
      data: { turnId, sessionId, deliveryId, agent: "main", channel: "ops", reply: "Three alerts." },
    });
    expect(request?.headers["webhook-id"]).toBe(turnId);
    expect(await timelineOf(gateway, deliveryId)).toMatchObject([
      { name: "announcement.delivered", detail: { channel: "ops", attempt: 1, status: 200 } },
    ]);
  });

  it("is sent to gateway.announceTo if no channel is named, and nowhere without it", async () => {
    await using gateway = await startWith([answer(200)], { gateway: { announceTo: "ops" } });
    await gateway.hooks.agent({ message: "unasked", channel: "ops" });
    await gateway.hooks.agent({ message: "labelled", delivery: "announce", channel: "a label" });
    await gateway.logged("announcement.delivered");
    expect(gateway.receiver.requests.map(({ body }) => JSON.parse(String(body)).data.reply)).toEqual(["labelled"]);
    await using alone = await startWith([answer(200)]);
    const { json } = await alone.hooks.agent({ message: "hello", delivery: "announce" });
    expect(await timelineOf(alone, json.deliveryId)).toMatchObject([{ name: "announcement.unaddressed" }]);
    expect(json.warning).toMatch(
      /^No channel takes the announcement: the request names no `channel`, and gateway\.announceTo/,
    );
    const wrong = await alone.hooks.agent({ message: "hello", delivery: "announce", channel: "opps" });
    expect(wrong.json.warning).toContain("`opps` is not among `channels`");
    const right = await alone.hooks.agent({ message: "hello", delivery: "announce", channel: "ops" });
    expect(right.json.warning).toBeUndefined();
    await alone.logged("announcement.delivered");
    expect(alone.receiver.requests).toHaveLength(1);
  });

  it("MUST not fail its turn, and is reported in health and metrics while it fails", async () => {
    await using gateway = await startWith([answer(503)]);
    const { json } = await gateway.hooks.agent({ message: "hello", delivery: "announce", channel: "ops" });
    await gateway.logged("announcement.retried", { channel: "ops", attempt: 1, reason: "HTTP 503" });
    const turn = await gateway.console.call("turns.get", { path: { turn_id: String(json.turnId) } });
    expect(turn.json).toMatchObject({ status: "completed", reply: "hello" });
    expect(await healthOf(gateway)).toMatchObject({
      status: "degraded",
      detail: "Last delivery failed: HTTP 503. 1 reply is waiting.",
    });
    const { text: metrics } = await gateway.rest.call("ops.metrics", { key: gateway.rpcToken });
    expect(metrics).toMatch(/^gateway_announcements_total\{channel="ops",outcome="retried"\} 1$/m);
    expect(metrics).toMatch(/^gateway_announcements_waiting 1$/m);
  });

  it("is waited for when the gateway stops, and the channel's secret and address are in no log", async () => {
    let letGo = () => {};
    const late: Behaviour = (socket, request) => {
      letGo = () => answer(200)(socket, request);
    };
    await using gateway = await startWith([late]);
    await gateway.hooks.agent({ message: "hello", delivery: "announce", channel: "ops" });
    await gateway.receiver.received(1);
    const drained = gateway.gateway.drain("SIGTERM", 10_000);
    await gateway.logged("draining");
    letGo();
    await drained;
    await gateway.logged("drained");
    expect(gateway.linesOf("announcement.delivered")).toHaveLength(1);
    expect(gateway.linesOf("announcements.left")).toHaveLength(0);
    expect(JSON.stringify(gateway.logs)).not.toMatch(new RegExp(`${SECRET}|:${gateway.receiver.port}`));
  });

  it("is found by its state and channel, with the reason, and can be sent again", async () => {
    await using gateway = await startWith([answer(410), answer(200)]);
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { gateway: null, deliveries: true });
    // Changes within a few milliseconds of the request come with its first push.
    const pushed = (state: string) =>
      socket.until(() =>
        [...socket.pushesOf("delivery.recorded"), ...socket.pushesOf("delivery.changed")].find(
          ({ delivery }) => delivery.announcement?.state === state,
        ),
      );
    const { json } = await gateway.hooks.agent({ message: "hello", delivery: "announce", channel: "ops" });
    await gateway.logged("announcement.failed");
    expect((await pushed("failed")).delivery).toMatchObject({ deliveryId: json.deliveryId, outcome: "completed" });
    const listed = async (query: Record<string, string>) =>
      (await gateway.console.call("deliveries.list", { query })).json.deliveries as { delivery_id: string }[];
    const failed = { channel: "ops", state: "failed", reason: expect.stringContaining("410") };
    expect(await listed({ announcement: "failed", channel: "ops" })).toMatchObject([
      {
        delivery_id: json.deliveryId,
        outcome: "completed",
        preview: "hello",
        reply_preview: "hello",
        announcement: failed,
      },
    ]);
    expect(await listed({ announcement: "failed", channel: "other" })).toEqual([]);
    const path = { turn_id: String(json.turnId) };
    const again = await gateway.console.call("turns.announce", { path });
    expect(again.json).toMatchObject({
      status: "completed",
      surface: "hooks",
      preview: "hello",
      announcement: { channel: "ops", state: "waiting", reason: null },
    });
    await gateway.logged("announcement.delivered");
    await pushed("delivered");
    expect(await listed({ announcement: "delivered" })).toMatchObject([{ delivery_id: json.deliveryId }]);
    expect(gateway.receiver.requests.map(({ headers }) => headers["webhook-id"])).toEqual([json.turnId, json.turnId]);
    expect(await timelineOf(gateway, json.deliveryId)).toMatchObject([
      { name: "announcement.failed" },
      { name: "announcement.requeued", detail: { channel: "ops", by: "console" } },
      { name: "announcement.delivered", detail: { attempt: 1 } },
    ]);
    await gateway.reload({ channels: {} });
    const removed = await gateway.console.call("turns.announce", { path });
    expect(removed).toMatchObject({
      error: "reply-not-announceable",
      json: { detail: expect.stringContaining("ops") },
    });
  });

  it("is failed with a log line by a stopping gateway whose store is not durable", async () => {
    const gateway = await startWith([hang]);
    await gateway.hooks.agent({ message: "hello", delivery: "announce", channel: "ops" });
    await gateway.receiver.received(1);
    await gateway[Symbol.asyncDispose]();
    expect(gateway.linesOf("announcements.left", { left: 1, stored: false })).toHaveLength(1);
  });
});

/** A mapping that announces each announcement that it gets. */
function relayTo(url: string): SomeConfig {
  return {
    webhooks: {
      mappings: {
        relay: {
          match: { "body.type": "turn.completed" },
          message: "{body.data.reply}+",
          channel: "next",
          delivery: "announce",
          verify: { type: "standard-webhooks", secret: SECRET },
        },
      },
    },
    channels: { next: { type: "webhook", url: `${url}/hooks/relay`, secret: SECRET } },
  };
}

describe("F28: announcements that return to a gateway", () => {
  const start = (gateway: TestGateway) =>
    gateway.hooks.agent({ message: "ping", delivery: "announce", channel: "next" });
  const endedLoop = { reason: "it passed through 3 or more announcements or agents, as in a loop" };
  /** The results of all webhooks of a gateway, of which `relayed` are from a gateway. */
  const repliesOf = async (gateway: TestGateway, relayed: number) => {
    const operation = "hooks.mappedByName";
    await gateway.until(() => gateway.linesOf("request", { operation }).length === relayed);
    // The calls between gateways do not pass through the harness.
    for (const { requestId } of gateway.linesOf("request", { operation })) noteChecked(String(requestId));
    const { json } = await gateway.console.call("deliveries.list", { query: { surface: "hooks" } });
    const turns = (json.deliveries as { turn_id: string }[]).map(({ turn_id }) =>
      gateway.console.call("turns.get", { path: { turn_id } }),
    );
    return (await Promise.all(turns)).map((turn) => String(turn.json.reply)).sort();
  };

  it("MUST end the loop of a gateway with itself after three", async () => {
    await using gateway = await startGateway();
    await gateway.reload(relayTo(gateway.url));
    await gateway.logged("config.reloaded");
    await start(gateway);
    await gateway.logged("announcement.failed", endedLoop);
    expect(await repliesOf(gateway, 3)).toEqual(["ping", "ping+", "ping++", "ping+++"]);
  });

  it("MUST end the loop of two gateways after three", async () => {
    await using one = await startGateway();
    await using two = await startGateway();
    await one.reload(relayTo(two.url));
    await two.reload(relayTo(one.url));
    await Promise.all([one.logged("config.reloaded"), two.logged("config.reloaded")]);
    await start(one);
    await two.logged("announcement.failed", endedLoop);
    expect(await repliesOf(one, 1)).toEqual(["ping", "ping++"]);
    expect(await repliesOf(two, 2)).toEqual(["ping+", "ping+++"]);
  });

  it("MUST end the loop of a receiver that requests its reply again, after three hops", async () => {
    await using gateway = await startWith([answer(200)]);
    const { json } = await gateway.hooks.agent({ message: "hello", delivery: "announce", channel: "ops" });
    const path = { turn_id: String(json.turnId) };
    const errors: unknown[] = [];
    for (let n = 1; n <= 3; n++) {
      await gateway.until(() => gateway.linesOf("announcement.delivered").length === n);
      const passedOn = gateway.receiver.requests.at(-1)?.headers["x-gateway-hops"];
      const headers = { "x-gateway-hops": String(passedOn) };
      errors.push((await gateway.console.call("turns.announce", { path, headers })).error);
    }
    expect(errors).toEqual([undefined, undefined, "reply-not-announceable"]);
    expect(gateway.receiver.requests).toHaveLength(3);
  });

  it("uses the hops that a request declares", async () => {
    await using gateway = await startWith([answer(200)]);
    const sending = (hops: string) => ({ headers: { "x-gateway-hops": hops } });
    const options = { message: "hello", delivery: "announce", channel: "ops" };
    await gateway.hooks.agent(options, sending("2"));
    await gateway.logged("announcement.delivered");
    expect(gateway.receiver.requests[0]?.headers["x-gateway-hops"]).toBe("3");
    const { json } = await gateway.hooks.agent(options, sending("nonsense"));
    await gateway.logged("announcement.failed", endedLoop);
    expect(await timelineOf(gateway, json.deliveryId)).toMatchObject([{ name: "announcement.failed" }]);
    expect(gateway.receiver.requests).toHaveLength(1);
  });
});

async function healthOf({ url }: TestGateway) {
  const { result } = await createRpc(url).call("system.health");
  return result.parts.find(({ name }) => name === "channels.ops");
}
