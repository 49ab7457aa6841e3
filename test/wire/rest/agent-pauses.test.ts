import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";

const EVENT = { text: "The build is green." };
function call({ console }: TestGateway, operation: "agents.pause" | "agents.resume", agent_name = "main") {
  return console.call(operation, { path: { agent_name } });
}
function pause(gateway: TestGateway, agent?: string) {
  return call(gateway, "agents.pause", agent);
}
function resume(gateway: TestGateway, agent?: string) {
  return call(gateway, "agents.resume", agent);
}
function send({ rest }: TestGateway, message: string, session_id?: string) {
  return rest.call("chat.send", { body: { message, ...(session_id !== undefined && { session_id }) } });
}
function counts({ gateway: { store } }: TestGateway) {
  return store.agentCounts("main");
}
function queued(gateway: TestGateway, count: number) {
  return expect.poll(() => counts(gateway).queued).toBe(count);
}

describe("agents.pause", () => {
  test("returns the time of the pause, and the same time again", async () => {
    await using alone = await startGateway();
    const { json } = await pause(alone);
    expect(json).toEqual({ agent_name: "main", paused: true, paused_at: expect.any(String) });
    expect((await pause(alone)).json).toEqual(json);
    expect(await alone.logged("agent.paused")).toMatchObject({ agent: "main", caller: "console" });
  });

  test("accepts messages, and callers that do not wait get the usual answer", async () => {
    await using alone = await startGateway();
    await pause(alone);
    const taken = await alone.hooks.agent({ message: "Deploy." });
    expect([taken.status, (await alone.hooks.wake({ ...EVENT, mode: "now" })).status]).toEqual([200, 200]);
    expect(counts(alone)).toMatchObject({ queued: 1, running: 0, waitingEvents: 1 });
    await resume(alone);
    await alone.logged("beat.ran");
    await expect.poll(() => counts(alone)).toMatchObject({ queued: 0, running: 0, waitingEvents: 0 });
  });

  test("answers 202 to a call that waits for a reply when its usual waiting time is over", async () => {
    await using alone = await startGateway({ replyWaitMs: 50 });
    await pause(alone);
    const { status, json } = await send(alone, "Hi.");
    expect([status, json.status]).toEqual([202, "queued"]);
    const path = { turn_id: String(json.turn_id) };
    await resume(alone);
    const read = () => alone.rest.call("turns.get", { path });
    await expect.poll(async () => (await read()).json).toMatchObject({ status: "completed", reply: "Hi." });
  });

  test("lets the running turn end, and starts the waiting ones in order after the agent is resumed", async () => {
    const puppet = createPuppet();
    await using alone = await startGateway({ makeBackend: () => puppet.backend });
    const running = send(alone, "one", "s");
    const played = await puppet.next();
    await pause(alone);
    const [two, three] = [send(alone, "two", "s"), send(alone, "three", "s")];
    await queued(alone, 2);
    played.say("done");
    played.end();
    expect((await running).json).toMatchObject({ status: "completed", reply: "done" });
    expect(counts(alone)).toMatchObject({ queued: 2, running: 0 });
    await resume(alone);
    const texts: string[] = [];
    for (let n = 0; n < 2; n++) {
      const next = await puppet.next();
      texts.push(next.turn.message.text);
      next.end();
    }
    expect(texts).toEqual(["two", "three"]);
    expect([(await two).status, (await three).status]).toEqual([200, 200]);
  });

  test("starts no beat, even if one is requested, and beats once after the agent is resumed", async () => {
    await using alone = await startGateway();
    await pause(alone);
    await alone.hooks.wake({ ...EVENT, mode: "now" });
    const beat = () => alone.console.call("agents.beat", { path: { agent_name: "main" } });
    expect((await beat()).json).toEqual({ agent_name: "main", outcome: "paused", waiting_events: 1 });
    expect(counts(alone).waitingEvents).toBe(1);
    await resume(alone);
    await expect.poll(() => counts(alone).waitingEvents).toBe(0);
  });

  test("holds the next turn of a running beat in the queue, and continues with all events after the agent is resumed", async () => {
    const puppet = createPuppet();
    const config = { webhooks: { rateLimit: { maxRequests: 0 } } };
    await using alone = await startGateway({ config, makeBackend: () => puppet.backend });
    for (let n = 0; n < 150; n++) await alone.hooks.wake(EVENT);
    await alone.console.call("agents.beat", { path: { agent_name: "main" } });
    const first = await puppet.next();
    await pause(alone);
    first.end();
    await expect.poll(() => counts(alone)).toMatchObject({ queued: 1, running: 0, waitingEvents: 0 });
    await resume(alone);
    (await puppet.next()).end();
    expect(await alone.logged("beat.ran")).toMatchObject({ events: 150, turns: 2, returned: 0 });
    const { json } = await alone.console.call("events.list", { query: { status: "queued" } });
    expect(json.events).toEqual([]);
  });

  test("remains in force while its agent is removed from the configuration and added again", async () => {
    const config = { gateway: { defaultAgent: "main" } };
    const [main, other] = [{ backend: "echo" }, { backend: "echo" }] as const;
    await using alone = await startGateway({ config: { ...config, agents: { main, other } } });
    const paused = await pause(alone, "other");
    await alone.reload({ ...config, agents: { main } });
    expect((await pause(alone, "other")).error).toBe("agent-not-found");
    await alone.reload({ ...config, agents: { main, other } });
    expect((await pause(alone, "other")).json).toEqual(paused.json);
  });

  test("is reported once on the gateway's stream, and in the metrics", async () => {
    await using alone = await startGateway();
    await pause(alone);
    await resume(alone);
    await resume(alone);
    await pause(alone);
    const { entries } = await alone.gateway.store.readGatewayEntries({ after: 0, limit: 10 });
    expect(entries.map(({ name }) => name)).toEqual(["agent.paused", "agent.resumed", "agent.paused"]);
    const { text } = await alone.console.send("GET", "/metrics");
    expect(text).toContain('gateway_agent_paused{agent="main"} 1');
  });

  test("does not delay the stop of a gateway whose store is not durable, even if turns wait", async () => {
    const alone = await startGateway();
    await pause(alone);
    const sent = send(alone, "Hi.");
    await queued(alone, 1);
    await alone[Symbol.asyncDispose]();
    expect((await sent).error).toBe("shutting-down");
  });
});
