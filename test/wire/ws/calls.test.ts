import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { openSocket } from "./socket.ts";

const puppet = createPuppet();
const gateway = await shareGateway({
  config: {
    agents: { main: { backend: "echo" }, live: { backend: "echo", concurrency: 10_000 } },
    gateway: { defaultAgent: "main" },
    limits: { turnsPerSession: 2_000 },
  },
  makeBackend: (name, agent) => (name === "live" ? puppet.backend : createEchoBackend(agent.echo)),
});

function request(id: unknown, method = "agent.list", params: object = {}) {
  return { jsonrpc: "2.0", method, params, id };
}

describe("calls", () => {
  test("of one connection are answered in the order of their ends, not of their arrival", async () => {
    using socket = await openSocket(gateway);
    const params = { agentName: "live", sessionId: "calls-1", message: "x", wait: true };
    socket.ws.send(JSON.stringify(request("slow", "agent.sendMessage", params)));
    socket.ws.send(JSON.stringify(request("quick")));
    const played = await puppet.next();
    await socket.until(() => socket.responses.some(({ id }) => id === "quick"));
    expect(socket.responses).toHaveLength(1);
    played.say("done");
    played.end();
    await socket.until(() => socket.responses.some(({ id }) => id === "slow"));
    expect(socket.responses.map(({ id }) => id)).toEqual(["quick", "slow"]);
  });

  test("of one message are answered in one; notifications are not answered", async () => {
    using socket = await openSocket(gateway);
    const frames: unknown[] = [];
    socket.ws.on("message", (data) => frames.push(JSON.parse(String(data))));
    socket.ws.send(JSON.stringify([request(1), { jsonrpc: "2.0", method: "agent.list" }, request(2, "nobody"), 7]));
    socket.ws.send(JSON.stringify({ jsonrpc: "2.0", method: "agent.list" }));
    socket.ws.send(
      JSON.stringify([
        { jsonrpc: "2.0", method: "agent.list" },
        { jsonrpc: "2.0", method: "nobody" },
      ]),
    );
    socket.ws.send(JSON.stringify(request("last")));
    // Either of the two answered calls may end first.
    await socket.until(() => socket.responses.length === 4);
    expect(frames).toHaveLength(2);
    expect(frames).toContainEqual([1, 2, null].map((id) => expect.objectContaining({ id })));
    expect(frames).toContainEqual(expect.objectContaining({ id: "last" }));
  });

  test("above 256 in progress wait unread, and none is refused or lost", async () => {
    using socket = await openSocket(gateway);
    using other = await openSocket(gateway);
    const count = 1_000;
    for (let n = 0; n < count; n++) {
      const params = { agentName: "live", sessionId: `calls-2-${n}`, message: "x", wait: true };
      socket.ws.send(JSON.stringify(request(n, "agent.sendMessage", params)));
    }
    const played = [];
    for (let n = 0; n < 256; n++) played.push(await puppet.next());
    await other.call("agent.list");
    await sleep(50);
    const status = await other.call<{ running: number }>("agent.status", { agentName: "live" });
    expect(status.running).toBe(256);
    for (let n = 0; n < count; n++) {
      const next = played.shift() ?? (await puppet.next());
      next.say(`${next.turn.sessionId}`);
      next.end();
    }
    await socket.until(() => socket.responses.length === count);
    const replies = new Map(socket.responses.map(({ id, result }) => [id, (result as { reply: string }).reply]));
    for (let n = 0; n < count; n++) expect(replies.get(n)).toBe(`calls-2-${n}`);
  });

  test("that wait end if their caller disconnects; their turns continue", async () => {
    using socket = await openSocket(gateway);
    const params = { agentName: "live", sessionId: "calls-3", message: "x", wait: true };
    socket.ws.send(JSON.stringify(request(1, "agent.sendMessage", params)));
    const played = await puppet.next();
    socket.ws.terminate();
    await gateway.logged("request", { operation: "agent.sendMessage", transport: "websocket" });
    expect(played.signal.aborted).toBe(false);
    played.end();
    await gateway.until(() => gateway.linesOf("turn.ended", { turnId: played.turn.turnId })[0]);
  });

  test("have a line in the log if they changed something or failed; the others are counted, and logged at `debug`", async () => {
    using socket = await openSocket(gateway);
    await socket.call("agent.status", { agentName: "main" });
    await socket.refusal("agent.status", { agentName: "calls-4" });
    const { turnId } = await socket.call("agent.sendMessage", {
      agentName: "main",
      sessionId: "calls-4",
      message: "x",
    });
    const sent = await gateway.logged("request", { operation: "agent.sendMessage", turnId });
    expect(sent).toMatchObject({ level: "info", surface: "rpc", transport: "websocket", caller: "ops", status: 200 });
    expect(await gateway.logged("request", { operation: "agent.status", error: "agent-not-found" })).toMatchObject({
      level: "info",
    });
    const quiet = gateway.linesOf("request", { operation: "agent.status" }).filter(({ error }) => error === undefined);
    expect(new Set(quiet.map(({ level }) => level))).toEqual(new Set(["debug"]));
  });

  test("are recorded unchanged, with the caller and its address", async () => {
    using socket = await openSocket(gateway, { headers: { "user-agent": "a test" } });
    const message = {
      ...request("rec", "agent.sendMessage", { agentName: "main", sessionId: "calls-5", message: "kept" }),
    };
    socket.ws.send(JSON.stringify([request(1), message]));
    const { turnId } = await socket.pushed("turn.completed");
    const { deliveryId = "" } = (await gateway.gateway.store.getTurn(turnId)) ?? {};
    const delivery = await gateway.gateway.store.getDelivery(deliveryId);
    expect(delivery).toMatchObject({
      surface: "rpc",
      operation: "agent.sendMessage",
      path: "/rpc/ws",
      caller: "ops",
      address: "127.0.0.1",
    });
    expect(delivery?.headers).toContain("user-agent: a test");
    expect(delivery?.headers).not.toContain(gateway.rpcToken);
    expect(JSON.parse(delivery?.body ?? "")).toMatchObject(message);
  });
});
