import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { clientFrame, closeCode, upgrade } from "./raw-socket.ts";
import { createCuttable, createSocketClient, openSocket } from "./socket.ts";

function tokens(...names: string[]) {
  return {
    gateway: {
      rpc: {
        auth: {
          tokens: names.map((name) => ({ name, token: `${name}-token-of-these-tests`, permissions: "*" as const })),
        },
      },
    },
  };
}
function token(name: string) {
  return { token: `${name}-token-of-these-tests` };
}

describe("a token", () => {
  test("that a reload removes loses its sockets, and no other token does (F16)", async () => {
    await using gateway = await startGateway({ config: tokens("stays", "goes") });
    using stays = await openSocket(gateway, token("stays"));
    const going = await Promise.all(Array.from({ length: 20 }, () => openSocket(gateway, token("goes"))));
    await gateway.reload(tokens("stays"));
    for (const socket of going) {
      expect(await socket.closed).toEqual({ code: 4401, reason: "the token is no longer valid" });
    }
    await stays.call("agent.list");
  });

  test("that is rotated 100 times under load fails no call of a remaining token (F16)", async () => {
    await using gateway = await startGateway({ config: tokens("stays", "turn-0") });
    using stays = await openSocket(gateway, token("stays"));
    for (let n = 1; n <= 100; n++) {
      using goes = await openSocket(gateway, token(`turn-${n - 1}`));
      const calls = Promise.all(Array.from({ length: 10 }, () => stays.call("agent.list")));
      await gateway.reload(tokens("stays", `turn-${n}`));
      expect((await goes.closed).code).toBe(4401);
      await calls;
    }
  });

  test("has its new permissions at once, and loses subscriptions that it may no longer have", async () => {
    const config = (permissions: string[]) => ({
      gateway: { rpc: { auth: { tokens: [{ name: "ops", token: "ops-token-of-these-tests", permissions }] } } },
    });
    await using gateway = await startGateway({ config: config(["session.get", "system.health"]) });
    using idle = await openSocket(gateway, token("ops"));
    using sessions = await openSocket(gateway, token("ops"));
    await sessions.call("rpc.subscribe", { agents: ["main"] });
    using health = await openSocket(gateway, token("ops"));
    await health.call("rpc.subscribe", { gateway: null });
    expect(await idle.refusal("agent.list")).toMatchObject({ code: -32001 });
    await gateway.reload(config(["agent.list", "system.health"]));
    expect(await sessions.closed).toEqual({ code: 4403, reason: "the token no longer has the permission session.get" });
    await idle.call("agent.list");
    await health.call("agent.list");
    await gateway.reload(config(["agent.list"]));
    expect((await health.closed).code).toBe(4403);
    await idle.call("agent.list");
  });
});

test("that loses a permission while it subscribes loses its socket", async () => {
  const config = (permissions: string[] | "*") => ({
    gateway: { rpc: { auth: { tokens: [{ name: "ops", token: "ops-token-of-these-tests", permissions }] } } },
  });
  for (const wanted of [{ agents: ["main"] }, { deliveries: true }]) {
    let mayRead: Promise<void> | undefined;
    let answer = () => {};
    let isReading = () => {};
    const reading = new Promise<void>((resolve) => (isReading = resolve));
    await using gateway = await startGateway({
      config: config("*"),
      wrapStore: (store) => ({
        ...store,
        readGatewayEntries: async (query) => {
          if (mayRead) isReading();
          await mayRead;
          return store.readGatewayEntries(query);
        },
      }),
    });
    using socket = await openSocket(gateway, token("ops"));
    await socket.call("agent.list");
    mayRead = new Promise((resolve) => (answer = resolve));
    const params = { gateway: null, ...wanted };
    socket.ws.send(JSON.stringify({ jsonrpc: "2.0", id: "subscribe", method: "rpc.subscribe", params }));
    await reading;
    await gateway.reload(config(["agent.list", "system.health"]));
    answer();
    expect((await socket.closed).code).toBe(4403);
    expect(socket.pushes).toEqual([]);
  }
});

describe("a gateway that stops (F22)", () => {
  test("closes each socket with 1012 and a different time to return, after its calls are answered", async () => {
    const puppet = createPuppet();
    const gateway = await startGateway({ makeBackend: () => puppet.backend });
    const idle = await Promise.all(Array.from({ length: 10 }, () => openSocket(gateway)));
    using busy = await openSocket(gateway);
    const params = { agentName: "main", sessionId: "stop", message: "x", wait: true };
    const answer = busy.call("agent.sendMessage", params);
    const played = await puppet.next();
    const drained = gateway.gateway.drain("SIGTERM", 5_000);
    expect((await busy.refusal("agent.sendMessage", params)).name).toBe("shutting-down");
    played.say("the end");
    played.end();
    expect(await answer).toMatchObject({ reply: "the end" });
    const hints = new Set<string>();
    for (const socket of [...idle, busy]) {
      const { code, reason } = await socket.closed;
      expect(code).toBe(1012);
      expect(reason).toMatch(/^the gateway restarts; retry-after-ms=\d+$/);
      hints.add(reason);
    }
    expect(hints.size).toBeGreaterThan(1);
    await busy.pushed("turn.completed").catch(() => {});
    expect(busy.pushesOf("turn.completed")).toHaveLength(1);
    await drained;
    await gateway[Symbol.asyncDispose]();
  });

  test("also ends sockets that read nothing, and refuses new ones while it drains", async () => {
    const puppet = createPuppet();
    const gateway = await startGateway({ makeBackend: () => puppet.backend });
    const { socket } = await upgrade(gateway.url, { headers: { authorization: `Bearer ${gateway.rpcToken}` } });
    using sender = await openSocket(gateway);
    await sender.call("agent.sendMessage", { agentName: "main", message: "x" });
    const played = await puppet.next();
    const drained = gateway.gateway.drain("SIGTERM", 2_000);
    played.end();
    await drained;
    expect((await sender.closed).code).toBe(1012);
    socket.destroy();
    await gateway[Symbol.asyncDispose]();
  });
});

describe("pings", () => {
  test("are sent to every socket, and a peer that misses two is closed", async () => {
    await using gateway = await startGateway({ socketTimes: { pingMs: 90 } });
    using alive = await openSocket(gateway);
    using dead = await openSocket(gateway, { autoPong: false });
    using talking = await openSocket(gateway, { autoPong: false });
    let pings = 0;
    alive.ws.on("ping", () => pings++);
    const talk = setInterval(() => talking.ws.readyState === 1 && void talking.call("agent.list").catch(() => {}), 20);
    expect((await dead.closed).code).toBe(1006);
    await gateway.logged("socket.closed", { by: "1006" });
    await expect.poll(() => pings).toBeGreaterThan(4);
    clearInterval(talk);
    await alive.call("agent.list");
    await talking.call("agent.list");
  });

  test("of a client are answered with the same payload", async () => {
    await using gateway = await startGateway();
    using socket = await openSocket(gateway);
    const answered = new Promise((resolve) => socket.ws.once("pong", (data) => resolve(String(data))));
    socket.ws.ping("are you there");
    expect(await answered).toBe("are you there");
  });
});

test("a client that closes gets its own code back", async () => {
  await using gateway = await startGateway();
  const { socket } = await upgrade(gateway.url, { headers: { authorization: `Bearer ${gateway.rpcToken}` } });
  const code = closeCode(socket);
  socket.write(clientFrame(Buffer.from([4_321 >> 8, 4_321 & 255]), { opcode: 8 }));
  expect(await code).toBe(4_321);
  socket.destroy();
});

test.each([
  ["a close", clientFrame(Buffer.from([1_000 >> 8, 1_000 & 255]), { opcode: 8 }), 1_000],
  ["a broken frame", clientFrame("x", { rsv: 0x30 }), 1_002],
])("a call before %s is answered before the gateway closes", async (_, last, code) => {
  const puppet = createPuppet();
  await using gateway = await startGateway({ makeBackend: () => puppet.backend });
  const { socket, rest } = await upgrade(gateway.url, { headers: { authorization: `Bearer ${gateway.rpcToken}` } });
  const closed = closeCode(socket, rest);
  let received = "";
  socket.on("data", (data) => (received += data.toString("latin1")));
  const params = { agentName: "main", message: "x", wait: true };
  const call = JSON.stringify({ jsonrpc: "2.0", method: "agent.sendMessage", params, id: 1 });
  socket.write(Buffer.concat([clientFrame(call), last]));
  const played = await puppet.next();
  played.say("the answer");
  played.end();
  expect(await closed).toBe(code);
  expect(received).toContain('"reply":"the answer"');
  socket.destroy();
});

/** RUN_LONG=1 uses the number of clients of the fault; both ends of each are in this process. */
const CLIENTS = process.env.RUN_LONG === undefined ? 500 : 5_000;

test(`F19: ${CLIENTS} clients that lose their connection at once all return and continue`, async () => {
  await using gateway = await startGateway();
  using sender = await openSocket(gateway);
  await sender.call("agent.sendMessage", { agentName: "main", sessionId: "storm", message: "before", wait: true });
  const { open, WebSocket } = createCuttable();
  const reconnect = { minMs: 20, maxMs: 500 };
  const clients = Array.from({ length: CLIENTS }, () => createSocketClient(gateway, { WebSocket, reconnect }));
  const readers = clients.map((client) => client.pushes());
  await Promise.all(clients.map((client) => client.subscribe({ sessions: { storm: null } })));
  expect(open.size).toBe(CLIENTS);
  for (const socket of open) socket.terminate();
  await sender.call("agent.sendMessage", { agentName: "main", sessionId: "storm", message: "after", wait: true });
  for (const reader of readers) {
    const seqs: number[] = [];
    for await (const { method, params } of reader) {
      if ("seq" in params) seqs.push(params.seq);
      if (method === "turn.completed") break;
    }
    expect(seqs).toEqual([7, 8, 9, 10, 11, 12]);
  }
  for (const client of clients) client.close();
}, 120_000);

test.each([10, 70_000, 400_000])(
  "a call of %i bytes with a close directly behind it is answered, or not executed",
  async (bytes) => {
    await using gateway = await startGateway();
    const { socket } = await upgrade(gateway.url, { headers: { authorization: `Bearer ${gateway.rpcToken}` } });
    const came: string[] = [];
    socket
      .setEncoding("latin1")
      .on("data", (part) => came.push(String(part)))
      .resume();
    const params = { agentName: "main", message: "x".repeat(bytes), wait: bytes === 10 };
    const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params });
    socket.write(Buffer.concat([clientFrame(call), clientFrame(Buffer.from([3, 232]), { opcode: 8 })]));
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await gateway.logged("socket.closed");
    expect([came.join("").includes('"result"'), gateway.gateway.store.stats().sessions > 0]).toBeOneOf([
      [true, true],
      [false, false],
    ]);
  },
);
