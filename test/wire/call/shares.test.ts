import { describe, expect, test } from "vitest";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

const FLOODING = "the-key-that-floods-the-gateway";
const OTHER = "the-other-key-of-the-gateway";
const TEXT = "x".repeat(10_000);

function start(limits: SomeConfig["limits"]) {
  return startGateway({ config: configWith(limits) });
}

function configWith(limits: SomeConfig["limits"]): SomeConfig {
  const keys = [
    { name: "flooding", key: FLOODING },
    { name: "other", key: OTHER },
  ];
  return {
    gateway: { defaultAgent: "main", rest: { auth: { keys } } },
    agents: {
      main: { backend: "echo", heartbeat: { every: "30d" } },
      slow: { backend: "echo", echo: { delayMs: 60_000 } },
    },
    limits,
  };
}

function send({ rest }: TestGateway, key: string, body: object) {
  return rest.call("chat.send", { key, body: { message: TEXT, ...body } });
}

/** Sends until a request is refused. Returns the refusal and the sessions of the other requests. */
async function flood(gateway: TestGateway) {
  const sessions: string[] = [];
  for (;;) {
    const reply = await send(gateway, FLOODING, {});
    if (reply.status !== 200) return { reply, sessions };
    sessions.push(String(reply.json.session_id));
  }
}

describe("a key that floods the store", () => {
  test("is refused when its share is used up, without a time for a retry, and another key still works", async () => {
    await using gateway = await start({ storeBytes: "1MiB" });
    const { reply, sessions } = await flood(gateway);
    expect(sessions.length).toBeGreaterThan(5);
    expect(gateway.gateway.store.stats().bytes).toBeLessThan(2 ** 20 / 2);
    expect(reply).toMatchObject({ status: 507, error: "share-full" });
    expect(reply.problem.detail).toMatch(
      /^limits\.share is reached: the turns and events of the REST key flooding hold \d{6} bytes\. Delete sessions with its turns, or raise the limit\.$/,
    );
    expect(reply.problem.retry_after_ms).toBeUndefined();
    expect(reply.headers.get("retry-after")).toBeNull();
    for (let n = 0; n < 3; n++) expect((await send(gateway, OTHER, {})).status).toBe(200);
    expect((await gateway.hooks.agent({ message: TEXT })).status).toBe(200);
    const sent = await createRpc(gateway.url).call("agent.sendMessage", { agentName: "main", message: TEXT });
    expect(sent.result.status).toBe("delivered");
  });

  test("is accepted again after the deletion of its sessions, or with a larger share", async () => {
    await using gateway = await start({ storeBytes: "1MiB" });
    const { sessions } = await flood(gateway);
    for (const sessionId of sessions.slice(0, 2)) await createRpc(gateway.url).call("session.delete", { sessionId });
    expect((await send(gateway, FLOODING, {})).status).toBe(200);
    const { reply } = await flood(gateway);
    expect(reply.error).toBe("share-full");
    await gateway.reload(configWith({ storeBytes: "1MiB", share: 0.5 }));
    expect((await send(gateway, FLOODING, {})).status).toBe(200);
  });
});

describe("a key that floods the queue", () => {
  const later = (gateway: TestGateway, key: string) =>
    send(gateway, key, { agent: "slow", session_id: "one", wait: false });

  test("is refused with the time for a retry, and accepted when one of its turns was cancelled", async () => {
    await using gateway = await start({ turns: 8 });
    const turns: string[] = [];
    for (let n = 0; n < 3; n++) turns.push(String((await later(gateway, FLOODING)).json.turn_id));
    const refused = await later(gateway, FLOODING);
    expect(refused).toMatchObject({ status: 429, error: "share-busy" });
    expect(refused.problem.detail).toBe(
      "limits.share is reached: 2 turns of the REST key flooding are waiting. A new turn is accepted when one of them starts or is cancelled.",
    );
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect((await later(gateway, OTHER)).status).toBe(202);
    await gateway.rest.call("turns.cancel", { key: FLOODING, path: { turn_id: turns[2] as string } });
    expect((await later(gateway, FLOODING)).status).toBe(202);
  });
});

describe("a webhook source that used up its share", () => {
  test("is refused before anything is stored, and its request is recorded", async () => {
    await using gateway = await start({ storeBytes: "1MiB", events: 8 });
    while ((await gateway.hooks.agent({ message: TEXT })).status === 200);
    const { store } = gateway.gateway;
    const stored = () => ({ ...store.stats(), deliveries: 0, deliveryBytes: 0, bytes: 0 });
    const before = stored();
    const refused = await gateway.hooks.agent({ message: TEXT });
    expect(refused).toMatchObject({ status: 507, error: "share-full" });
    expect(refused.headers.get("retry-after")).toBeNull();
    expect(await gateway.hooks.wake({ text: "hi" })).toMatchObject({ status: 507, error: "share-full" });
    expect(stored()).toEqual(before);
    const { json } = await gateway.console.call("deliveries.list", { query: { id: refused.requestId } });
    expect(json.deliveries).toMatchObject([{ outcome: "refused", error: { name: "share-full" } }]);
  });

  test("is refused with the time for a retry if too many of its events wait", async () => {
    await using gateway = await start({ events: 8 });
    for (let n = 0; n < 2; n++) expect((await gateway.hooks.wake({ text: "hi" })).status).toBe(200);
    const refused = await gateway.hooks.wake({ text: "hi" });
    expect(refused).toMatchObject({ status: 429, error: "share-busy" });
    expect(refused.problem.detail).toMatch(
      /^limits\.share is reached: 2 events of the webhook source shared are waiting\./,
    );
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  });
});
