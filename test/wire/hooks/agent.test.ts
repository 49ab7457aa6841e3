import { afterAll, describe, expect, test } from "vitest";
import type { BackendTurn } from "#backends/backend.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { type Start, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";

const { backend, next } = createPuppet(["fast", "deep"]);
const played: Start = { makeBackend: () => backend };
const gateway = await startGateway(played);
afterAll(() => gateway[Symbol.asyncDispose]());

/** Sends it, lets the turn reply, and returns the backend's input. */
async function sent(body: object, at: TestGateway = gateway): Promise<{ turn: BackendTurn; reply: Reply }> {
  const reply = await at.hooks.agent(body);
  expect(reply.status).toBe(200);
  const one = await next();
  one.say("done");
  one.end();
  return { turn: one.turn, reply };
}

describe("the agent gets from /hooks/agent", () => {
  test("the message, exactly as it was sent, marked as text from outside", async () => {
    const message = ' {body.x} {{ "Grüße" \u0000 👋 \n';
    const { turn } = await sent({ message });
    expect(turn.message).toMatchObject({ text: message, outside: true, context: undefined });
  });

  test("the context, as JSON", async () => {
    const context = { region: "eu-west", alerts: [1, { deep: null }], "": true };
    const { turn } = await sent({ message: "hi", context });
    expect(JSON.parse(turn.message.context as string)).toEqual(context);
    expect((await sent({ message: "hi", context: {} })).turn.message.context).toBe("{}");
  });

  test("the model, if the agent has it; another one is refused by name", async () => {
    expect((await sent({ message: "hi", model: "deep" })).turn.model).toBe("deep");
    const { error, problem } = await gateway.hooks.agent({ message: "hi", model: "gigantic" });
    expect([error, problem.detail]).toEqual(["unknown-model", "The models of the agent main are: fast, deep."]);
  });

  test("the session: a new one each time, or the named one, with its history", async () => {
    const one = await sent({ message: "one" });
    const two = await sent({ message: "two" });
    expect(one.reply.json.sessionId).not.toBe(two.reply.json.sessionId);
    expect(await two.turn.history()).toEqual([]);
    const session = "webhook:of the alerts";
    await sent({ message: "first", session });
    const again = await sent({ message: "second", session });
    expect(again.reply.json.sessionId).toBe(session);
    expect((await again.turn.history()).map(({ text }) => text)).toEqual(["first", "done"]);
  });

  test("the channel, as a label of the session", async () => {
    const { reply } = await sent({ message: "hi", channel: "#ops & co" });
    expect(reply.json.channel).toBe("#ops & co");
    const rpc = createRpc(gateway.url);
    const { result } = await rpc.call("session.get", { sessionId: String(reply.json.sessionId) });
    expect(result.session).toMatchObject({ channel: "#ops & co", userId: "shared", agentName: "main" });
  });
});

describe("a turn of /hooks/agent", () => {
  test("is answered before it has run, and its result is at /turns/{turn_id}", async () => {
    const { json } = await gateway.hooks.agent({ message: "hi" });
    const path = { turn_id: String(json.turnId) };
    expect((await gateway.rest.call("turns.get", { path })).json.status).toMatch(/queued|running/);
    const one = await next();
    const events = (await gateway.rest.stream("turns.events", { path })).all();
    one.say("the result");
    one.end();
    await events;
    const turn = await gateway.rest.call("turns.get", { path });
    expect(turn.json).toMatchObject({
      status: "completed",
      reply: "the result",
      session_id: json.sessionId,
      delivery_id: json.deliveryId,
    });
  });

  test("does not wait for the turn of another session: isolated", async () => {
    const first = await gateway.hooks.agent({ message: "slow" });
    const slow = await next();
    const { reply } = await sent({ message: "quick" });
    const quick = await gateway.rest.call("turns.get", { path: { turn_id: String(reply.json.turnId) } });
    expect(["running", "completed"]).toContain(quick.json.status);
    const path = { turn_id: String(first.json.turnId) };
    expect((await gateway.rest.call("turns.get", { path })).json.status).toBe("running");
    slow.end();
  });
});
