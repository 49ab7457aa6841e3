import { expect, test } from "vitest";
import { operationsAt, requestsOf } from "#test/harness/examples.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";

// Readers of the contract try its examples first: each request is accepted. `test/contract` validates the examples of replies.

const gateway = await shareGateway({ config: { skills: { dirs: [skillsFolder(SUMMARISE)] } } });
const { console } = gateway;
const requests = requestsOf(operationsAt("/api/v1/chat", "/api/v1/skills", "/api/v1/keys", "/api/v1/mappings"));

test.each(requests)("the request of $operation is accepted: $name", async ({ operation, name, value }) => {
  const { stream } = value as { stream?: boolean };
  if (stream)
    return expect((await (await console.stream(operation, { body: value })).all()).at(-1)?.event).toBe(
      "turn.completed",
    );
  const { json } = await console.call("keys.create", { body: { name: "support desk" } });
  const path = { key_id: String(json.key_id) };
  const { status, error } = await console.call(operation, {
    body: value,
    ...(operation === "keys.rotate" && { path }),
  });
  if (operation === "mappings.dryRun" && name === "one") expect(error).toBe("mapping-not-found");
  else expect(status).toBeLessThan(300);
});

test("the example of a skill's id is a skill", async () => {
  const { json } = await console.call("skills.get", { path: { skill_id: "summarise-thread" } });
  expect(json.skill_id).toBe("summarise-thread");
});

test("the examples of an idempotency key, of the last event and of queries are accepted", async () => {
  expect((await console.call("keys.list", { query: { limit: "50" } })).status).toBe(200);
  const query = { status: "running", agent: "main", session_id: "agent:main:rest:ada", limit: "50" };
  expect((await console.call("turns.list", { query })).json).toEqual({ turns: [], next_cursor: null });
  const headers = { "idempotency-key": "order-4711-welcome" };
  const { json } = await console.call("chat.send", { headers, body: { message: "hi" } });
  const path = { turn_id: String(json.turn_id) };
  const stream = await console.stream("turns.events", { path, headers: { "last-event-id": "7" } });
  expect((await stream.all()).at(-1)?.event).toBe("turn.completed");
});
