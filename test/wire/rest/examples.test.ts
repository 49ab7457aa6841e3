import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { Operation } from "#generated/routes.ts";
import { BackendError } from "#kit/errors.ts";
import { createPuppet } from "#test/harness/backends.ts";
import type { StreamEvent } from "#test/harness/contract.ts";
import { type Example, nameOf, operationsAt, plain, repliesOf, requestsOf } from "#test/harness/examples.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { createRest, type EventStream, type Rest } from "#test/harness/rest.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { createEventReader } from "#test/harness/sse.ts";

const skills = { dirs: [skillsFolder(SUMMARISE)] };
const CI = "a-key-of-the-build-server";
const rest = { auth: { keys: [{ name: "ci", key: CI }] } };
const echo = await shareGateway({ config: { skills, gateway: { rest } } });
const ci = createRest(echo.url, CI);
const puppet = createPuppet();
const played = await shareGateway({ config: { skills }, makeBackend: () => puppet.backend, replyWaitMs: 20 });
const bare = await shareGateway();
const triage = skillsFolder({ "skills/triage": "---\nname: triage\n---\nSort the alerts." });
const invalid = await shareGateway({ config: { skills: { dirs: [join(triage, "skills")] } } });

const operations = operationsAt("/api/v1/chat", "/api/v1/skills", "/api/v1/turns", "/api/v1/keys");
const requests = requestsOf(operations);
const replies = repliesOf(operations);

/** The contract's example conversation, begun anew. */
const ADA = "agent:main:rest:ada";
beforeEach(async () => {
  for (const { gateway } of [echo, played]) await gateway.store.deleteSession(ADA, Date.now());
});

const conversation = (operation: Operation): Record<string, unknown> => {
  const name = operation === "chat.send" ? "conversation" : "params";
  return requests.find((one) => one.operation === operation && one.name === name)?.value as Record<string, unknown>;
};

describe("the examples of requests", () => {
  test.each(requests)("$operation: $name", async ({ operation, value }) => {
    const { stream } = value as { stream?: boolean };
    if (stream)
      expect((await (await ci.stream(operation, { body: value })).all()).at(-1)?.event).toBe("turn.completed");
    else {
      const { json } = await echo.console.call("keys.create", { body: { name: "support desk" } });
      const path = { key_id: String(json.key_id) };
      const reply = await echo.console.call(operation, { body: value, ...(operation === "keys.rotate" && { path }) });
      expect(reply.status).toBeLessThan(300);
    }
  });

  test("skills.get: the id of the example is a skill", async () => {
    const { json } = await echo.console.call("skills.get", { path: { skill_id: "summarise-thread" } });
    expect(json.skill_id).toBe("summarise-thread");
  });

  test.each(["turns.get", "turns.events", "turns.cancel", "keys.revoke"] as const)(
    "%s: the id of the example is well formed, and of nobody",
    async (operation) => {
      const path = { turn_id: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N", key_id: "key_01M7WW41SHF3C7M5K2ZBW6QXRD" };
      expect((await echo.console.call(operation, { path })).error).toMatch(/^(turn|key)-not-found$/);
    },
  );

  test("keys.list: the limit; chat.send: the idempotency key; turns.events: the last event", async () => {
    expect((await echo.console.call("keys.list", { query: { limit: "50" } })).status).toBe(200);
    const query = { status: "running", agent: "main", session_id: ADA, limit: "50" };
    expect((await echo.console.call("turns.list", { query })).json).toEqual({ turns: [], next_cursor: null });
    const headers = { "idempotency-key": "order-4711-welcome" };
    const { json } = await ci.call("chat.send", { headers, body: { message: "hi" } });
    const path = { turn_id: String(json.turn_id) };
    const stream = await ci.stream("turns.events", { path, headers: { "last-event-id": "7" } });
    expect((await stream.all()).at(-1)?.event).toBe("turn.completed");
  });
});

/** Plays the backend so that the stream becomes that of the example, one piece at a time. */
const playStream = async (example: unknown, stream: EventStream, client: Rest): Promise<StreamEvent[]> => {
  const wanted = eventsIn(String(example));
  const isCancelled = wanted.at(-1)?.event === "turn.cancelled";
  const turn = await puppet.next();
  const got: StreamEvent[] = [];
  for (const { event, data } of wanted) {
    if (event === "message.delta") turn.say(String(data.text));
    // The text of a turn that is cancelled is completed by its end.
    if (event === "message.completed") {
      turn.use(usageAt(wanted));
      await new Promise(setImmediate);
      if (!isCancelled) turn.end();
      else await client.call("turns.cancel", { path: { turn_id: turn.turn.turnId } });
    }
    if (event === "turn.failed") turn.use(usageAt(wanted));
    if (event === "turn.failed") turn.fail(new BackendError(String((data.error as { detail: string }).detail)));
    const { value } = await stream.events.next();
    if (value) got.push(value);
  }
  return [...got, ...(await stream.all())];
};
const usageAt = (events: readonly StreamEvent[]) => events.at(-1)?.data.usage as { input: number; output: number };

const eventsIn = (text: string): StreamEvent[] => {
  const events: StreamEvent[] = [];
  const { push } = createEventReader(
    (event) => events.push(event),
    (fault) => expect(fault).toBeUndefined(),
  );
  push(Buffer.from(text));
  return events;
};

/** Starts the example conversation and leaves its stream. The turn waits for what the test says. */
const begin = async (operation: Operation = "chat.send"): Promise<Record<string, string>> => {
  const { json } = await played.rest.call(operation, { body: conversation(operation) });
  return { turn_id: String(json.turn_id) };
};

const startStream = ({ operation, value }: Example) =>
  played.rest
    .stream(operation, { body: conversation(operation) })
    .then((stream) => playStream(value, stream, played.rest));
const follows = async ({ value }: Example): Promise<StreamEvent[]> =>
  playStream(value, await played.rest.stream("turns.events", { path: await begin() }), played.rest);

/** How each example of a reply comes about. */
const producers: Record<string, (example: Example) => Promise<unknown>> = {
  "chat.send 200 application/json completed": ({ operation }) => completed(operation),
  "chat.send 200 text/event-stream completed": startStream,
  "chat.send 202 application/json accepted": ({ operation }) => accepted(operation),
  "skills.trigger 200 application/json completed": ({ operation }) => completed(operation),
  "skills.trigger 200 text/event-stream completed": startStream,
  "skills.trigger 202 application/json accepted": ({ operation }) => accepted(operation),
  "skills.list 200 application/json one": async () => (await ci.call("skills.list")).json,
  "skills.list 200 application/json invalid": async () => (await invalid.rest.call("skills.list")).json,
  "skills.get 200 application/json one": async () =>
    (await echo.console.call("skills.get", { path: { skill_id: "summarise-thread" } })).json,
  "skills.list 200 application/json none": async () => (await bare.rest.call("skills.list")).json,
  "turns.get 200 application/json completed": async () => {
    const { json } = await ci.call("chat.send", { body: conversation("chat.send") });
    return (await ci.call("turns.get", { path: { turn_id: String(json.turn_id) } })).json;
  },
  "turns.get 200 application/json queued": async () => {
    await begin();
    const path = await begin();
    const turn = await played.rest.call("turns.get", { path });
    (await puppet.next()).end();
    (await puppet.next()).end();
    return turn.json;
  },
  "turns.get 200 application/json failed": async ({ value }) => {
    const [path, turn] = [await begin(), await puppet.next()];
    const { usage, error } = value as { usage: { input: number; output: number }; error: { detail: string } };
    const { events } = await played.rest.stream("turns.events", { path });
    turn.use(usage);
    turn.fail(new BackendError(error.detail));
    for await (const _ of events);
    return (await played.rest.call("turns.get", { path })).json;
  },
  "turns.list 200 application/json one": async () => {
    await ci.call("chat.send", { body: conversation("chat.send") });
    return (await echo.console.call("turns.list", { query: { session_id: ADA } })).json;
  },
  "turns.events 200 text/event-stream completed": follows,
  "turns.events 200 text/event-stream failed": follows,
  "turns.events 200 text/event-stream cancelled": follows,
  "turns.events 200 text/event-stream resumed": async ({ value }) => {
    const [path, turn] = [await begin(), await puppet.next()];
    turn.say("What changed ");
    const headers = { "last-event-id": "4.13" };
    const stream = await played.rest.stream("turns.events", { path, headers });
    turn.say("since yesterday?");
    turn.use(usageAt(eventsIn(String(value))));
    const first = await stream.events.next();
    turn.end();
    return [first.value, ...(await stream.all())];
  },
  "turns.cancel 200 application/json cancelled": async ({ value }) => {
    const [path, turn] = [await begin(), await puppet.next()];
    const { reply, usage } = value as { reply: string; usage: { input: number; output: number } };
    turn.say(reply);
    turn.use(usage);
    await new Promise(setImmediate);
    return (await played.rest.call("turns.cancel", { path })).json;
  },
  "keys.list 200 application/json two": async () => {
    await ci.call("skills.list");
    for (const { key_id } of await listKeys()) if (key_id) await echo.console.call("keys.revoke", { path: { key_id } });
    const expires_at = new Date(Date.now() + 90 * 86_400_000).toISOString();
    await echo.console.call("keys.create", { body: { name: "support desk", expires_at } });
    return { keys: await listKeys(), next_cursor: null };
  },
  "keys.create 201 application/json minted": async () =>
    (await echo.console.call("keys.create", { body: { name: "support desk" } })).json,
  "keys.rotate 201 application/json rotated": async () => {
    const { json } = await echo.console.call("keys.create", { body: { name: "support desk" } });
    return (await echo.console.call("keys.rotate", { path: { key_id: String(json.key_id) }, body: {} })).json;
  },
};

const listKeys = async () => (await echo.console.call("keys.list")).json.keys as { key_id: string | null }[];

const completed = async (operation: Operation) => (await ci.call(operation, { body: conversation(operation) })).json;

const accepted = async (operation: Operation) => {
  const { status, json } = await played.rest.call(operation, { body: conversation(operation) });
  (await puppet.next()).end();
  expect(status).toBe(202);
  return json;
};

describe("the examples of replies", () => {
  test.each(replies)("$operation $status $type: $name", async (example) => {
    const produce = producers[nameOf(example)];
    if (!produce) throw new Error("nothing here produces this example");
    const wanted = example.type === "text/event-stream" ? eventsIn(String(example.value)) : example.value;
    expect(plain(await produce(example))).toEqual(plain(wanted));
  });
});
