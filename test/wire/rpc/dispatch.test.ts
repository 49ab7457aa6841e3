import { describe, expect, test } from "vitest";
import { exampleMethods } from "#test/harness/rpc-table.ts";
import { Outcome } from "#wire/call/access-line.ts";
import { createRpcDispatch, type RpcExchange } from "#wire/rpc/rpc.ts";

// The dispatcher without a transport: text in, text out.

function exchange(given: Partial<RpcExchange> = {}): RpcExchange {
  return {
    caller: { surface: "rpc", tokenId: "config:ops", name: "ops", permissions: ["*"] },
    requestId: "req_01M7YN2C7DT5V3D1HM9SE7C4WP",
    signal: () => AbortSignal.abort(),
    idempotencyKey: undefined,
    delivery: () => expect.unreachable(),
    outcome: new Outcome(),
    ...given,
  };
}
function hideInJson(json: string) {
  return json;
}
const events = { unexpectedError: () => {} };
function call(method: string, params: unknown = {}, id: unknown = 1) {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

describe("the dispatcher", () => {
  const dispatch = createRpcDispatch(exampleMethods, { events, hideInJson });

  test("requires only what calls need", async () => {
    const given = exchange();
    for (const name of ["requestId", "signal", "idempotencyKey", "follow", "servedAt"] as const)
      if (name !== "idempotencyKey") Object.defineProperty(given, name, { get: () => expect.unreachable() });
    expect(await dispatch(call("sum", [1]), given)).toContain('"result":1');
  });

  test("returns the data of the access line: the method, the first error, the turn", async () => {
    const alone = exchange();
    await dispatch(call("sum", [1]), alone);
    expect(alone.outcome).toMatchObject({ operation: "sum", error: undefined, changes: false });
    const batch = exchange();
    await dispatch(`[${call("nothing")},${call("fail")},${call("sum", [1])}]`, batch);
    expect(batch.outcome).toMatchObject({ operation: "batch", error: "method-not-found" });
    const none = exchange();
    await dispatch("[]", none);
    expect(none.outcome).toMatchObject({ operation: "batch", error: "invalid-request" });
  });

  test("yields to others while a batch of fifty starts", async () => {
    let begun = 0;
    const beginning = new Map(exampleMethods);
    const row = { name: "begin", permission: null, required: [], check: () => undefined };
    beginning.set("begin", { ...row, run: async () => ++begun });
    const calls = Array.from({ length: 50 }, (_, id) => call("begin", {}, id));
    const answer = createRpcDispatch(beginning, { events, hideInJson })(`[${calls.join(",")}]`, exchange());
    expect(begun).toBeLessThan(50);
    const answers = JSON.parse(String(await answer)) as { id: number; result: number }[];
    expect(answers.map(({ id, result }) => result - id)).toEqual(Array(50).fill(1));
  });
});
