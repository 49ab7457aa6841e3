import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { showDelivery } from "#core/recorder/deliveries.ts";
import { DeliveryFeed, type DeliveryFollower } from "#core/recorder/delivery-feed.ts";
import type { Pushes } from "#generated/push-types.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { pushDeliveries } from "#wire/socket/delivery-pushes.ts";
import { createPushFrames } from "#wire/socket/pushes.ts";
import { silent } from "../../stores/world.ts";
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

  test("reads the store for a change, and only while a client follows", async () => {
    let reads = 0;
    await using gateway = await startGateway({
      wrapStore: (store) => ({
        ...store,
        readDeliveries: (ids) => {
          reads++;
          return store.readDeliveries(ids);
        },
      }),
    });
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { gateway: null });
    await gateway.hooks.wake({ text: "x" });
    await socket.pushed("event.queued");
    expect(reads).toBe(0);
    await socket.call("rpc.subscribe", { deliveries: true });
    await gateway.hooks.mapped({ any: 1 });
    await shown(socket, ({ outcome }) => outcome === "unmatched");
    expect(reads).toBe(1);
  });

  test("gets `stream.reset` for changes that could not be read from the store, and continues", async () => {
    let failures = 0;
    await using gateway = await startGateway({
      wrapStore: (store) => ({
        ...store,
        readDeliveries: async (ids) => {
          if (failures-- > 0) throw new Error("the store is away");
          return store.readDeliveries(ids);
        },
      }),
    });
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", WISH);
    failures = 1;
    await gateway.hooks.mapped({ any: 1 });
    await socket.pushed("stream.reset");
    expect(socket.pushesOf("delivery.recorded")).toEqual([]);
    await gateway.hooks.mapped({ any: 2 });
    await shown(socket, ({ outcome }) => outcome === "unmatched");
  });
});

describe("the feed of deliveries", () => {
  /** A feed of a gateway's store, whose timers fire when the test says so. */
  async function openFeed() {
    const gateway = await startGateway();
    const { store, events } = gateway.gateway;
    const timers: { ms: number; fire: () => void }[] = [];
    const after = (ms: number, fire: () => void) => {
      timers.push({ ms, fire });
      return () => {};
    };
    const feed = new DeliveryFeed({ store, events, clock: { now: Date.now, monotonic: Date.now, after } });
    const unwatch = store.watch({ ...silent, delivery: (id, change) => feed.add(id, change) });
    const news: string[] = [];
    const losses: number[] = [];
    const follower: DeliveryFollower = {
      tell: (some) => void news.push(...some.map(({ name, delivery }) => `${name} ${delivery.deliveryId}`)),
      miss: () => void losses.push(news.length),
    };
    const record = (n: number) =>
      store.recordDelivery({ ...SOME, deliveryId: idOf(n) }, { entries: 100_000, bytes: 2 ** 28, refused: 100 });
    return {
      feed,
      follower,
      news,
      losses,
      timers,
      record,
      /** Lets the time pass in which changes are collected, and answers that time. */
      async collect(): Promise<number | undefined> {
        await expect.poll(() => timers.length).toBe(1);
        const timer = timers.shift();
        timer?.fire();
        return timer?.ms;
      },
      async [Symbol.asyncDispose]() {
        unwatch();
        feed.close();
        await gateway[Symbol.asyncDispose]();
      },
    };
  }

  function idOf(n: number): string {
    return `dlv_${String(n).padStart(26, "0")}`;
  }

  test("reports each delivery of a burst once, in order, and sets no timer without changes", async () => {
    await using on = await openFeed();
    await on.record(0);
    expect(on.timers).toEqual([]);
    const unfollow = on.feed.follow(on.follower);
    expect(on.timers).toEqual([]);
    for (let n = 1; n <= 100; n++) await on.record(n);
    expect(on.timers).toHaveLength(1);
    for (const n of [5, 5, 0]) on.feed.add(idOf(n), "outcome");
    await on.collect();
    await expect.poll(() => on.news.length).toBe(101);
    const recorded = Array.from({ length: 100 }, (_, n) => `delivery.recorded ${idOf(n + 1)}`);
    expect(on.news).toEqual([...recorded, `delivery.changed ${idOf(0)}`]);
    // Its outcome is the one that was told.
    on.feed.add(idOf(5), "outcome");
    await on.collect();
    await on.record(101);
    await on.collect();
    await expect.poll(() => on.news.at(-1)).toBe(`delivery.recorded ${idOf(101)}`);
    expect(on.news).toHaveLength(102);
    unfollow();
    await on.record(102);
    expect(on.timers).toEqual([]);
  });

  test("omits changes above the limit, reports each loss once, and then collects for longer", async () => {
    await using on = await openFeed();
    on.feed.follow(on.follower);
    for (let n = 0; n < 2_500; n++) await on.record(n);
    const usual = await on.collect();
    await expect.poll(() => on.losses).toEqual([2_000]);
    on.feed.lose();
    await expect.poll(() => on.timers.length).toBe(1);
    await on.record(2_500);
    const longer = await on.collect();
    await expect.poll(() => on.losses).toEqual([2_000, 2_001]);
    expect(longer).toBeGreaterThan(usual as number);
  });

  test("omits deliveries that are no longer stored", async () => {
    await using on = await openFeed();
    on.feed.follow(on.follower);
    on.feed.add("dlv_gone", "outcome");
    await on.record(1);
    await on.collect();
    await expect.poll(() => on.news).toEqual([`delivery.recorded ${idOf(1)}`]);
  });
});

describe("the pushes of deliveries", () => {
  test("skip a slow reader, which gets `stream.reset` when it has room again", async () => {
    let tell: DeliveryFollower["tell"] = () => {};
    const sent: string[] = [];
    let holds = 0;
    const sink = {
      isOpen: true,
      isFull: false,
      hasRoom: true,
      push: (frame: Buffer) => void sent.push(String(frame)),
      hold: () => void holds++,
      cut() {},
    };
    const follow = (one: DeliveryFollower) => {
      tell = one.tell;
      return () => {};
    };
    const frames = createPushFrames({ sessions: "s", gateway: "g" }, (json) => json);
    const reader = pushDeliveries({ follow }, frames, sink, () => 7);
    const news = [
      {
        name: "delivery.recorded",
        at: 0,
        delivery: showDelivery({
          ...{ ...SOME, turnId: undefined, eventId: undefined, sessionId: undefined, messageId: undefined },
          agent: undefined,
          outcome: "unmatched",
        }),
      },
    ] as const;
    const pushedOf = async (act: () => void) => {
      act();
      await new Promise((resolve) => setImmediate(resolve));
      return sent.splice(0).map((frame) => /"method":"([^"]+)"/.exec(frame)?.[1]);
    };
    expect(await pushedOf(() => tell(news))).toEqual([]); // Nothing before the answer.
    reader.start(false);
    expect(await pushedOf(() => tell(news))).toEqual(["delivery.recorded"]);
    Object.assign(sink, { isFull: true, hasRoom: false });
    expect(holds).toBe(0);
    expect(await pushedOf(() => tell(news))).toEqual([]);
    Object.assign(sink, { isFull: false });
    expect(await pushedOf(() => tell(news))).toEqual([]); // It would not know what it missed.
    expect(holds).toBe(2);
    Object.assign(sink, { hasRoom: true });
    expect(await pushedOf(reader.resume)).toEqual(["stream.reset"]);
    expect(await pushedOf(() => tell(news))).toEqual(["delivery.recorded"]);
    reader.stop();
    expect(await pushedOf(() => tell(news))).toEqual([]);
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
