import { describe, expect, test } from "vitest";
import { BackendError } from "#kit/errors.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { shareGateway } from "#test/harness/gateway.ts";

const echo = await shareGateway({
  config: {
    agents: {
      main: { backend: "echo" },
      flaky: { backend: "echo", echo: { failTimes: 1 } },
      broken: { backend: "echo", echo: { fail: "no such luck" } },
      late: { backend: "echo", deadline: "1ms", echo: { delayMs: 60_000 } },
      slow: { backend: "echo", echo: { delayMs: 60_000 } },
    },
    gateway: { defaultAgent: "main" },
  },
});
const puppet = createPuppet();
const played = await shareGateway({ makeBackend: () => puppet.backend, replyWaitMs: 30 });
const patientPuppet = createPuppet();
const patient = await shareGateway({ makeBackend: () => patientPuppet.backend });
function turnAt(gateway: typeof echo, turnId: unknown) {
  return gateway.rest.call("turns.get", { path: { turn_id: String(turnId) } });
}

describe("a message with a complete reply", () => {
  test.each([
    ["plain", "What changed since yesterday?"],
    ["of many scripts", "Grüße, 你好, שלום, 👩‍👩‍👧 and \u{1f600}"],
    ["with blanks and controls", "  \t line one\r\nline two\u0000\u001f\u2028 "],
    ["with half a character", "half \ud83d of a pair"],
    ["that looks like markup", '<b>&amp;</b> "quoted" \\ {body.x} {{y}}'],
  ])("is echoed exactly: %s", async (_, message) => {
    const { json } = await echo.rest.call("chat.send", { body: { message } });
    expect(json).toMatchObject({ status: "completed", reply: message });
    const tokens = Math.ceil(message.length / 4);
    expect(json.usage).toEqual({ input: tokens, output: tokens, total: 2 * tokens });
  });

  test("opens a new conversation if it names neither session nor user", async () => {
    const ids = [];
    for (let n = 0; n < 2; n++)
      ids.push((await echo.rest.call("chat.send", { body: { message: "hi" } })).json.session_id);
    expect(ids[0]).toMatch(/^chat:[0-9A-Z]{26}$/);
    expect(ids[1]).not.toBe(ids[0]);
  });

  test.each([
    [{ user_id: "ada" }, "agent:main:rest:ada"],
    [{ user_id: "ada:main/é" }, "agent:main:rest:ada%3Amain%2F%C3%A9"],
    [{ session_id: "any printable id" }, "any printable id"],
    [{ session_id: "both", user_id: "ada" }, "both"],
  ])("continues the conversation of %o", async (fields, sessionId) => {
    const first = await echo.rest.call("chat.send", { body: { message: "hi", ...fields } });
    const second = await echo.rest.call("chat.send", { body: { message: "again", ...fields } });
    expect([first.json.session_id, second.json.session_id]).toEqual([sessionId, sessionId]);
    expect(second.json.turn_id).not.toBe(first.json.turn_id);
  });

  test("stores the requested model and the delivery in the turn", async () => {
    const { json } = await echo.rest.call("chat.send", { body: { message: "hi", model: "any-model" } });
    const { json: turn } = await turnAt(echo, json.turn_id);
    expect(turn).toMatchObject({ status: "completed", model: "any-model", attempt: 1, reply: "hi", error: null });
    const delivery = await echo.gateway.store.getDelivery(String(turn.delivery_id));
    expect(delivery).toMatchObject({ surface: "rest", operation: "chat.send", caller: "tests", address: "127.0.0.1" });
    expect(Object.keys(delivery?.headers ?? {})).not.toContain("authorization");
    expect(delivery?.body).toBe('{"message":"hi","model":"any-model"}');
  });

  test("is retried if that can help", async () => {
    const { json } = await echo.rest.call("chat.send", { body: { message: "hi", agent: "flaky" } });
    expect(json.reply).toBe("hi");
    expect((await turnAt(echo, json.turn_id)).json.attempt).toBe(2);
  });
});

describe("a message whose turn does not complete", () => {
  test.each([
    ["broken", 502, "turn-failed", "no such luck"],
    ["late", 504, "turn-timeout", "the turn passed its deadline"],
  ])("to the agent %s is %i %s, with its turn", async (agent, status, name, detail) => {
    const reply = await echo.rest.call("chat.send", { body: { message: "hi", agent } });
    expect([reply.status, reply.error, reply.problem.detail]).toEqual([status, name, detail]);
    const { json: turn } = await turnAt(echo, reply.problem.turn_id);
    expect(turn).toMatchObject({ status: "failed", reply: null, error: { name, detail } });
    await echo.logged("request", { requestId: reply.requestId, error: name, turnId: reply.problem.turn_id });
  });

  test("because it was cancelled is 409, with its turn", async () => {
    const waits = echo.rest.call("chat.send", { body: { message: "hi", agent: "slow" } });
    const { turnId } = await echo.logged("turn.started", { agent: "slow" });
    await echo.rest.call("turns.cancel", { path: { turn_id: String(turnId) } });
    const { status, error, problem } = await waits;
    expect([status, error, problem.turn_id]).toEqual([409, "turn-cancelled", turnId]);
  });

  test("because it was cancelled has its partial reply, and its backend is notified", async () => {
    const waits = played.rest.stream("chat.send", { body: { message: "hi" } });
    const [turn, { events }] = [await puppet.next(), await waits];
    turn.say("half a rep");
    for await (const { event } of events) if (event === "message.delta") break;
    const { json } = await played.rest.call("turns.cancel", { path: { turn_id: turn.turn.turnId } });
    expect(json).toMatchObject({ status: "cancelled", reply: "half a rep", error: null });
    expect(turn.signal.aborted).toBe(true);
    const again = await played.rest.call("turns.cancel", { path: { turn_id: turn.turn.turnId } });
    expect([again.error, again.problem.turn_id]).toEqual(["turn-ended", turn.turn.turnId]);
  });

  test("has the backend's own description of its failure, and nothing of what the backend throws", async () => {
    const fails = async (error: unknown) => {
      const stream = await played.rest.stream("chat.send", { body: { message: "hi" } });
      (await puppet.next()).fail(error);
      return (await stream.all()).at(-1)?.data.error;
    };
    expect(await fails(new BackendError("The provider is asleep."))).toMatchObject({
      detail: "The provider is asleep.",
    });
    expect(await fails(new TypeError("cannot read /srv/secret"))).toEqual({
      name: "turn-failed",
      title: "Turn failed",
      detail: "the agent's backend failed",
    });
  });
});

describe("a message whose turn takes longer than the call waits", () => {
  test("is 202, and its turn can be read until it completes", async () => {
    const { status, json } = await played.rest.call("chat.send", { body: { message: "hi" } });
    expect([status, json.status]).toEqual([202, "running"]);
    expect((await turnAt(played, json.turn_id)).json).toMatchObject({ status: "running", ended_at: null, usage: null });

    const turn = await puppet.next();
    const { events } = await played.rest.stream("turns.events", { path: { turn_id: String(json.turn_id) } });
    turn.say("at last");
    turn.use({ input: 3, output: 4 });
    turn.end();
    for await (const _ of events);
    const ended = { status: "completed", reply: "at last", usage: { input: 3, output: 4, total: 7 } };
    expect((await turnAt(played, json.turn_id)).json).toMatchObject(ended);
  });

  test("is 202 behind another turn of its session, and can be cancelled there", async () => {
    const body = { message: "hi", session_id: "one at a time" };
    await played.rest.call("chat.send", { body });
    const { status, json } = await played.rest.call("chat.send", { body });
    expect([status, json.status]).toEqual([202, "queued"]);
    const cancelled = await played.rest.call("turns.cancel", { path: { turn_id: String(json.turn_id) } });
    expect(cancelled.json).toMatchObject({ status: "cancelled", attempt: 0, started_at: null, reply: null });
    (await puppet.next()).end();
  });

  // If the call waited only a moment, it might be answered before its caller disconnects.
  test("continues if its caller disconnects", async () => {
    const caller = new AbortController();
    const sent = patient.rest.call("chat.send", { body: { message: "hi" }, signal: caller.signal });
    const turn = await patientPuppet.next();
    caller.abort();
    await expect(sent).rejects.toThrow("aborted");
    await patient.logged("request", { status: 499 });
    turn.say("nobody listens");
    turn.end();
    const { all } = await patient.rest.stream("turns.events", { path: { turn_id: turn.turn.turnId } });
    expect((await all()).at(-1)).toMatchObject({ event: "turn.completed", data: { reply: "nobody listens" } });
  });
});

describe("a message whose sender does not wait", () => {
  test("is 202 at once, and a repeat with its key has the same turn, or its end if it has ended", async () => {
    const call = { body: { message: "hi", wait: false }, headers: { "Idempotency-Key": "not-waiting" } };
    const { status, json } = await patient.rest.call("chat.send", call);
    expect(status).toBe(202);
    expect(["queued", "running"]).toContain(json.status);
    const again = await patient.rest.call("chat.send", call);
    expect([again.status, again.json.turn_id]).toEqual([202, json.turn_id]);
    const turn = await patientPuppet.next();
    const { all } = await patient.rest.stream("turns.events", { path: { turn_id: String(json.turn_id) } });
    turn.say("done");
    turn.end();
    await all();
    const ended = await patient.rest.call("chat.send", call);
    expect([ended.status, ended.json]).toMatchObject([
      200,
      { status: "completed", reply: "done", turn_id: json.turn_id },
    ]);
  });

  test("cannot request a stream as well", async () => {
    const { status, problem } = await echo.rest.call("chat.send", {
      body: { message: "hi", stream: true, wait: false },
    });
    expect([status, problem.detail]).toEqual([
      400,
      "`stream: true` and `wait: false` exclude each other. Send one of them.",
    ]);
  });
});
