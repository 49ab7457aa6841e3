import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import type { Pushes } from "#generated/push-types.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway } from "#test/harness/gateway.ts";
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

/** The state of a delivery in a page that merges by id; resolves as soon as it has that outcome. */
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
  test("are pushed when they are recorded and when their outcome changes, as in the list", async () => {
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

    // A page that merges by id has the same as the list, except that the list has no id of a deleted session.
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
    // They are not entries: their position is that of the newest entry that this socket got.
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

  test("that continues from a cursor starts with `stream.reset`: the list has to be read again", async () => {
    await using gateway = await startRecorded({});
    using socket = await openSocket(gateway);
    const { gateway: cursor } = await socket.call("rpc.subscribe", { gateway: null });
    await socket.call("rpc.subscribe", { gateway: cursor, deliveries: true });
    expect(await socket.pushed("stream.reset")).toEqual({ cursor });
  });

  test("of a token that loses a permission ends with its socket", async () => {
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
