import { describe, expect, test, vi } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";

const CAUSE = "no such thing in /srv/gateway/secrets.json, password hunter2";

// The real handlers, but that each of them throws what nobody expects.
vi.mock("#handlers/hooks/table.ts", async (original) => {
  const { hooksHandlers } = await original<typeof import("#handlers/hooks/table.ts")>();
  const fail = () => {
    throw new TypeError(CAUSE);
  };
  return {
    hooksHandlers: (core: Parameters<typeof hooksHandlers>[0]) =>
      Object.fromEntries(Object.keys(hooksHandlers(core)).map((operation) => [operation, fail])),
  };
});

const gateway = await shareGateway({ config: { webhooks: { mappings: { any: { match: {}, message: "hi" } } } } });

describe.each([
  ["/wake", { text: "hi" }],
  ["/agent", { message: "hi" }],
  ["", {}],
  ["/any", {}],
])("a webhook to %j, when its handler throws", (below, body) => {
  test("is answered 500 without a word of the cause, which the log has under the request id", async () => {
    const reply = await gateway.hooks.send(below, body);
    expect(reply.error).toBe("internal");
    expect(Object.keys(reply.problem).toSorted()).toEqual(["request_id", "status", "title", "type"]);
    expect(reply.text).not.toMatch(/secrets|TypeError|hunter2|srv/);
    const line = await gateway.logged("unexpected.error", { requestId: reply.requestId });
    expect(JSON.stringify(line)).toContain("no such thing in /srv/gateway/secrets.json");
  });
});

test("the recorder knows of it, and not of the cause either", async () => {
  const { requestId } = await gateway.hooks.wake({ text: "hi" });
  const { json } = await gateway.console.call("deliveries.list", { query: { id: requestId } });
  expect(json.deliveries).toMatchObject([{ outcome: "refused", status: 500 }]);
  const [{ delivery_id }] = json.deliveries as [{ delivery_id: string }];
  const { text } = await gateway.console.call("deliveries.get", { path: { delivery_id } });
  expect(text).not.toMatch(/hunter2|TypeError/);
});
