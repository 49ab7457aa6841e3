import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { showDelivery } from "#core/recorder/deliveries.ts";
import { createDeliveryFeed, type DeliveryFollower } from "#core/recorder/delivery-feed.ts";
import type { Pushes } from "#generated/push-types.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { pushDeliveries } from "#wire/socket/delivery-pushes.ts";
import { createPushFrames } from "#wire/socket/pushes.ts";
import { recorderOf } from "../rest/recorder.ts";
import { openSocket, type TestSocket } from "./socket.ts";

type Pushed = Pushes["delivery.recorded"]["delivery"];
const WISH = { gateway: null, deliveries: true };

async function startRecorded(store: object) {
  const puppet = createPuppet();
  const gateway = await startGateway({
    config: {
      ...store,
      agents: {
        main: { backend: "echo", heartbeat: { every: "1h" } },
        bad: { backend: "echo", echo: { fail: "out of order" } },
        live: { backend: "echo" },
      },
      gateway: {
        defaultAgent: "main",
        rpc: {
          auth: {
            tokens: [
              { name: "ops", token: "rpc-token-of-the-tests", permissions: "*" },
              { name: "health", token: "health-token-of-tests", permissions: ["system.health", "session.get"] },
            ],
          },
        },
      },
    },
    makeBackend: (name, agent) => (name === "live" ? puppet.backend : createEchoBackend(agent.echo)),
  });
  return Object.assign(gateway, { next: puppet.next });
}

/** What a page that merges by id would show of a delivery; resolves as soon as it has come to that outcome. */
function shown(socket: TestSocket, is: (delivery: Pushed) => boolean): Promise<Pushed> {
  return socket.until(() =>
    [...socket.pushesOf("delivery.recorded"), ...socket.pushesOf("delivery.changed")]
      .map(({ delivery }) => delivery)
      .find(is),
  );
}

async function folderOf(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "gateway-deliveries-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

function withoutSession({ sessionId: _, ...rest }: Pushed) {
  return rest;
}

function camel(summary: object): object {
  return Object.fromEntries(
    Object.entries(summary).map(([key, value]) => [key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]),
  );
}

describe.each([
  ["memory", () => ({})],
  ["sqlite", (folder: string) => ({ store: { type: "sqlite", path: join(folder, "gateway.db") } })],
] as const)("deliveries over the WebSocket, with %s", (_, storeIn) => {
  test("are pushed as they are recorded and as their outcome changes, as the list shows them", async () => {
    await using gateway = await startRecorded(storeIn(await folderOf()));
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", WISH);
    const send = (agentName: string) =>
      socket.call<{ turnId: string }>("agent.sendMessage", { agentName, message: "x" });

    const { turnId } = await send("live");
    const played = await gateway.next();
    const running = await shown(socket, (one) => one.turnId === turnId);
    expect(running).toMatchObject({ operation: "agent.sendMessage", outcome: "running", caller: "ops", status: null });
    played.end();
    await shown(socket, (one) => one.turnId === turnId && one.outcome === "completed");

    const failed = await send("bad");
    await shown(socket, (one) => one.turnId === failed.turnId && one.outcome === "failed");

    const stopped = await send("live");
    await gateway.next();
    await gateway.console.call("turns.cancel", { path: { turn_id: stopped.turnId } });
    await shown(socket, (one) => one.turnId === stopped.turnId && one.outcome === "cancelled");

    await gateway.hooks.agent({ message: "hi" }, { token: null });
    await shown(socket, ({ outcome, caller }) => outcome === "refused" && caller === null);

    const hook = await gateway.hooks.agent({ message: "once" });
    const id = String(hook.json.deliveryId);
    await recorderOf(gateway).replay(id);
    await shown(socket, ({ replayOf }) => replayOf === id);

    const waiting = await socket.call<{ sessionId: string; turnId: string }>("agent.sendMessage", {
      agentName: "live",
      message: "x",
      sessionId: "to-delete",
    });
    await gateway.next();
    await shown(socket, (one) => one.turnId === waiting.turnId);
    await socket.call("session.delete", { sessionId: "to-delete" });
    await shown(socket, (one) => one.turnId === waiting.turnId && one.outcome === "gone");

    // What a page that merges by id has is what the list has, but that a deleted session has no id there.
    const merged = () => {
      const all = new Map<string, Pushed>();
      for (const { method, params } of socket.pushes) {
        if (method !== "delivery.recorded" && method !== "delivery.changed") continue;
        expect(all.has(params.delivery.deliveryId)).toBe(method === "delivery.changed");
        all.set(params.delivery.deliveryId, params.delivery);
      }
      return [...all.values()].map(withoutSession);
    };
    await expect
      .poll(async () => ((await recorderOf(gateway).list()).map(camel) as Pushed[]).map(withoutSession).reverse())
      .toEqual(merged());
  });

  test("of a system event are pushed when it is queued and when it is handled", async () => {
    await using gateway = await startRecorded(storeIn(await folderOf()));
    using socket = await openSocket(gateway);
    const { gateway: begin } = await socket.call("rpc.subscribe", WISH);
    await gateway.hooks.wake({ text: "the disk is full", mode: "next-heartbeat" });
    const queued = await shown(socket, ({ operation }) => operation === "hooks.wake");
    expect(queued).toMatchObject({ outcome: "queued", status: 200, eventId: expect.stringMatching(/^evt_/) });
    await gateway.hooks.wake({ text: "now", mode: "now" });
    await shown(socket, ({ eventId, outcome }) => eventId === queued.eventId && outcome === "handled");
    // They are no entries: their place is that of the newest entry that this socket was sent.
    let place = { seq: 0, cursor: begin };
    for (const { method, params } of socket.pushes) {
      const { seq, cursor } = params as { seq: number; cursor: string };
      if (method.startsWith("delivery.")) expect({ seq, cursor }).toEqual(place);
      else place = { seq, cursor };
    }
    expect(place.seq).toBeGreaterThan(0);
  });
});

describe("a subscription to deliveries", () => {
  test("needs the permission `*`, and the gateway's stream", async () => {
    await using gateway = await startRecorded({});
    using health = await openSocket(gateway, { token: "health-token-of-tests" });
    const refusal = await health.refusal("rpc.subscribe", WISH);
    expect(refusal).toMatchObject({ code: -32001, name: "forbidden", detail: expect.stringContaining("`*`") });
    using socket = await openSocket(gateway);
    expect(await socket.refusal("rpc.subscribe", { deliveries: true })).toMatchObject({
      code: -32602,
      detail: expect.stringContaining("`gateway`"),
    });
    expect(await socket.refusal("rpc.subscribe", { gateway: null, deliveries: false })).toMatchObject({ code: -32602 });
    await socket.call("rpc.subscribe", { gateway: null });
    await socket.call("rpc.subscribe", { deliveries: true });
    using console = await openSocket(gateway, { token: gateway.consoleToken });
    await console.call("rpc.subscribe", WISH);
    await gateway.hooks.mapped({ any: 1 });
    await shown(socket, ({ outcome }) => outcome === "unmatched");
    await shown(console, ({ outcome }) => outcome === "unmatched");
    expect(health.pushes).toEqual([]);
  });

  test.each([{ deliveries: true }, { gateway: true }])("ends with %j", async (end) => {
    await using gateway = await startRecorded({});
    using socket = await openSocket(gateway);
    using other = await openSocket(gateway);
    for (const one of [socket, other]) await one.call("rpc.subscribe", WISH);
    await socket.call("rpc.unsubscribe", end);
    await gateway.hooks.mapped({ any: 1 });
    await shown(other, ({ outcome }) => outcome === "unmatched");
    await socket.call("agent.list");
    expect(socket.pushes).toEqual([]);
  });

  test("that goes on from a cursor begins with `stream.reset`: the list has to be read again", async () => {
    await using gateway = await startRecorded({});
    using socket = await openSocket(gateway);
    const { gateway: cursor } = await socket.call("rpc.subscribe", { gateway: null });
    await socket.call("rpc.subscribe", { gateway: cursor, deliveries: true });
    expect(await socket.pushed("stream.reset")).toEqual({ cursor });
  });

  test("a token that may not do everything any more loses its socket", async () => {
    await using gateway = await startRecorded({});
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", WISH);
    const tokens = [{ name: "ops", token: "rpc-token-of-the-tests", permissions: ["system.health"] }];
    await gateway.reload({ gateway: { rpc: { auth: { tokens } } } });
    expect(await socket.closed).toMatchObject({ code: 4403 });
  });

  test("reads nothing of the store while there is none", async () => {
    let reads = 0;
    await using gateway = await startGateway({
      wrapStore: (store) => ({
        ...store,
        listDeliveries: (query) => {
          reads++;
          return store.listDeliveries(query);
        },
      }),
    });
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { gateway: null });
    await gateway.hooks.wake({ text: "x" });
    await socket.pushed("event.queued");
    expect(reads).toBe(0);
    await socket.call("rpc.subscribe", { deliveries: true });
    await expect.poll(() => reads).toBeGreaterThan(1);
  });

  test("goes on after the store failed for a moment", async () => {
    let failures = 0;
    await using gateway = await startGateway({
      wrapStore: (store) => ({
        ...store,
        listDeliveries: async (query) => {
          if (failures-- > 0) throw new Error("the store is away");
          return store.listDeliveries(query);
        },
      }),
    });
    using socket = await openSocket(gateway);
    failures = 1;
    expect(await socket.refusal("rpc.subscribe", WISH)).toMatchObject({ code: -32603 });
    await socket.call("rpc.subscribe", WISH);
    failures = 2;
    await gateway.hooks.mapped({ any: 1 });
    await shown(socket, ({ outcome }) => outcome === "unmatched");
  });

  test("tells that some were left out when more came than one look reads", async () => {
    await using gateway = await startGateway();
    const told: string[] = [];
    let missed = 0;
    const follower: DeliveryFollower = {
      tell: (news) => void told.push(...news.map(({ delivery }) => delivery.deliveryId)),
      miss: () => {
        missed++;
      },
    };
    const { store, events } = gateway.gateway;
    let look = (): void => {};
    const clock = {
      now: Date.now,
      monotonic: Date.now,
      after: (_: number, fire: () => void) => {
        look = fire;
        return () => {
          look = () => {};
        };
      },
    };
    const feed = createDeliveryFeed({ store, clock, events });
    const unfollow = await feed.follow(follower);
    const record = (n: number) =>
      store.recordDelivery(
        { ...SOME, deliveryId: `dlv_${String(n).padStart(26, "0")}` },
        { entries: 100_000, bytes: 2 ** 28, refused: 100 },
      );
    for (let n = 0; n < 2_500; n++) await record(n);
    look();
    await expect.poll(() => told.length).toBe(2_000);
    expect(missed).toBe(1);
    await record(2_500);
    look();
    await expect.poll(() => told.length).toBe(2_001);
    expect([missed, new Set(told).size]).toEqual([1, 2_001]);
    unfollow();
    await record(2_501);
    look();
    await store.listDeliveries({ limit: 1 });
    expect(told).toHaveLength(2_001);
  });

  test("a slow reader is sent none, and `stream.reset` when it has room again", async () => {
    let tell: DeliveryFollower["tell"] = () => {};
    const sent: string[] = [];
    const sink = {
      isOpen: true,
      isFull: false,
      hasRoom: true,
      push: (frame: string) => void sent.push(frame),
      hold() {},
      cut() {},
    };
    const follow = async (one: DeliveryFollower) => {
      tell = one.tell;
      return () => {};
    };
    const frames = createPushFrames({ sessions: "s", gateway: "g" }, (json) => json);
    const reader = await pushDeliveries({ follow }, frames, sink, () => 7);
    const news = [
      {
        name: "delivery.recorded",
        at: 0,
        delivery: showDelivery({
          ...SOME,
          turnId: undefined,
          eventId: undefined,
          sessionId: undefined,
          messageId: undefined,
          agent: undefined,
          outcome: "unmatched",
        }),
      },
    ] as const;
    const look = async (more: typeof news | readonly []) => {
      tell(more);
      await new Promise((resolve) => setImmediate(resolve));
      return sent.splice(0).map((frame) => /"method":"([^"]+)"/.exec(frame)?.[1]);
    };
    expect(await look(news)).toEqual([]); // Nothing before the answer.
    reader.start(false);
    expect(await look(news)).toEqual(["delivery.recorded"]);
    Object.assign(sink, { isFull: true, hasRoom: false });
    expect(await look(news)).toEqual([]);
    Object.assign(sink, { isFull: false });
    expect(await look(news)).toEqual([]); // It would not know what it missed.
    Object.assign(sink, { hasRoom: true });
    expect(await look([])).toEqual(["stream.reset"]);
    expect(await look(news)).toEqual(["delivery.recorded"]);
    reader.stop();
    expect(await look(news)).toEqual([]);
  });
});

const SOME = {
  deliveryId: "dlv_01M7YN0XEK2C9V6S4HT8QZ3RWD",
  at: 0,
  surface: "hooks",
  operation: "hooks.mapped",
  method: "POST",
  path: "/hooks",
  address: "127.0.0.1",
  requestId: "req_01M7YN0XEK2C9V6S4HT8QZ3RWD",
  caller: "shared",
  headers: "",
  body: undefined,
  bytes: 0,
  answer: "unmatched",
  status: 200,
  mapping: undefined,
  replayOf: undefined,
  senderId: undefined,
  steps: [],
} as const;
