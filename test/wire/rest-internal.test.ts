import { describe, expect, test, vi } from "vitest";
import { type Route, routes } from "#generated/routes.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { targetOf } from "#test/harness/rest.ts";

const CAUSE = "no such thing in /srv/gateway/secrets.json, password hunter2";

// The real handlers, but that each of them throws what nobody expects.
vi.mock("#handlers/openai/table.ts", async (original) => {
  const { openAiHandlers } = await original<typeof import("#handlers/openai/table.ts")>();
  const fail = () => {
    throw new TypeError(CAUSE);
  };
  return {
    openAiHandlers: (...parts: Parameters<typeof openAiHandlers>) =>
      Object.fromEntries(Object.keys(openAiHandlers(...parts)).map((operation) => [operation, fail])),
  };
});
vi.mock("#handlers/rest/table.ts", async (original) => {
  const { restHandlers } = await original<typeof import("#handlers/rest/table.ts")>();
  const fail = () => {
    throw new TypeError(CAUSE);
  };
  return {
    restHandlers: (...parts: Parameters<typeof restHandlers>) =>
      Object.fromEntries(Object.keys(restHandlers(...parts)).map((operation) => [operation, fail])),
  };
});

const gateway = await shareGateway({ config: { gateway: { openai: { enabled: true } } } });
const served = (routes as readonly Route[]).filter(({ surface }) => surface === "rest" || surface === "openai");
const bodies: Record<string, unknown> = {
  "chat.send": { message: "hi" },
  "skills.trigger": { skill_id: "x" },
  "keys.create": { name: "x" },
  "keys.rotate": {},
  "mappings.dryRun": { body: {} },
  "completions.create": { model: "main", messages: [{ role: "user", content: "hi" }] },
};

describe.each(served)("$operation, when its handler throws", ({ operation, surface, method, path }) => {
  test("answers 500 without a word of the cause, which the log has under the request id", async () => {
    const target = targetOf(path, {
      path: { turn_id: "x", key_id: "x", delivery_id: "x", event_id: "x", agent_name: "x", skill_id: "x", model: "x" },
    });
    const reply = await gateway.console.send(method, target, { body: bodies[operation] });
    expect(reply.error).toBe("internal");
    if (surface === "openai")
      expect(reply.json.error).toEqual({
        message: "Internal error.",
        type: "server_error",
        param: null,
        code: "internal",
      });
    else expect(Object.keys(reply.problem).toSorted()).toEqual(["request_id", "status", "title", "type"]);
    expect(reply.text).not.toMatch(/secrets|TypeError|hunter2|srv/);

    const line = await gateway.logged("unexpected.error", { requestId: reply.requestId });
    expect(JSON.stringify(line)).toContain("no such thing in /srv/gateway/secrets.json");
    expect(JSON.stringify(line)).toContain("rest-internal.test.ts");
  });
});

test("goes on as if nothing had been", async () => {
  expect((await gateway.rest.send("GET", "/healthz")).status).toBe(200);
});
