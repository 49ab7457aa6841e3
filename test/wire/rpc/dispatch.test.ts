import { Router } from "@open-rpc/server-js/build/router.js";
import { describe, expect, test } from "vitest";
import type { CallContext } from "#core/call.ts";
import { methods } from "#generated/methods.ts";
import openrpc from "#generated/openrpc.json" with { type: "json" };
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { exampleMethods } from "#test/harness/rpc-table.ts";
import { createRpcDispatch, type RpcExchange } from "#wire/rpc/rpc.ts";
import { createRpcMethods } from "#wire/rpc/rpc-methods.ts";
import { dereference } from "../../generate/dereference.ts";

// The dispatcher by itself: text in, text out, and no transport around it.

const exchange = (given: Partial<RpcExchange> = {}): RpcExchange => ({
  caller: { surface: "rpc", tokenId: "config:ops", name: "ops", permissions: ["*"] },
  requestId: "req_01M7YN2C7DT5V3D1HM9SE7C4WP",
  signal: () => AbortSignal.abort(),
  idempotencyKey: undefined,
  delivery: () => expect.unreachable(),
  outcome: { operation: "unknown", error: undefined, reason: undefined, turnId: undefined, changes: false },
  ...given,
});
const events = { unexpectedError: () => {} };
const call = (method: string, params: unknown = {}, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });

describe("the dispatcher", () => {
  const dispatch = createRpcDispatch(exampleMethods, { events });

  test("asks for nothing that no call needs", async () => {
    const given = exchange();
    for (const name of ["requestId", "signal", "idempotencyKey", "follow", "servedAt"] as const)
      if (name !== "idempotencyKey") Object.defineProperty(given, name, { get: () => expect.unreachable() });
    expect(await dispatch(call("sum", [1]), given)).toContain('"result":1');
  });

  test("says what the access line needs: the method, the first error, the turn", async () => {
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

  test("lets others have their turn while a batch of fifty begins", async () => {
    let begun = 0;
    const beginning = new Map(exampleMethods);
    const row = { name: "begin", permission: null, required: [], check: () => undefined };
    beginning.set("begin", { ...row, run: async () => ++begun });
    const calls = Array.from({ length: 50 }, (_, id) => call("begin", {}, id));
    const answer = createRpcDispatch(beginning, { events })(`[${calls.join(",")}]`, exchange());
    expect(begun).toBeLessThan(50);
    const answers = JSON.parse(String(await answer)) as { id: number; result: number }[];
    expect(answers.map(({ id, result }) => result - id)).toEqual(Array(50).fill(1));
  });
});

/** Params that each method takes, from its examples and beyond. */
const VALID: [RpcMethod, Record<string, unknown>][] = [
  ["agent.list", {}],
  ["agent.status", { agentName: "main" }],
  ["agent.reload", { agentName: "main" }],
  ["agent.sendMessage", { agentName: "main", message: "hi" }],
  ["agent.sendMessage", { message: "hi", userId: "ada", channel: "c", agentName: "main" }],
  [
    "agent.sendMessage",
    {
      agentName: "main",
      message: "hi",
      channel: "c",
      userId: "u",
      sessionId: "s",
      model: "m",
      idempotencyKey: "k",
      wait: true,
      stream: true,
    },
  ],
  ["session.list", { agentName: "main", limit: 500, cursor: "c" }],
  ["session.get", { sessionId: "s", limit: 1, cursor: "c", includeCompacted: true }],
  ["session.compact", { sessionId: "s", keep: 0 }],
  ["session.delete", { sessionId: "s" }],
  ["system.health", {}],
  ["system.info", {}],
  ["system.reload", {}],
  ["usage.stats", { from: "2026-11-21T00:00:00.000Z", to: "2026-11-22T00:00:00.000Z", agentName: "a", groupBy: "day" }],
];
const DEFAULTS = [false, 50, 20];

describe("@open-rpc/server-js, as an oracle on valid calls", () => {
  const document = dereference(openrpc) as unknown as ConstructorParameters<typeof Router>[0];
  const names = Object.keys(methods) as RpcMethod[];
  /** By position, as the router calls its methods. */
  const seen = (values: unknown[]) => ({ seen: values.map((value) => value ?? null) });
  const router = new Router(
    document,
    Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => Promise.resolve(seen(args))])) as never,
  );
  const handlers = Object.fromEntries(
    names.map((name) => [
      name,
      (params: Record<string, unknown>) => seen(methods[name].params.map((param) => params[param])),
    ]),
  ) as unknown as RpcHandlers<CallContext>;
  const dispatch = createRpcDispatch(
    createRpcMethods(handlers, () => undefined),
    { events },
  );

  test.each(VALID)("%s %j: both find the same params", async (method, params) => {
    const theirs = (await router.call(method, params as never)) as { result?: { seen: unknown[] } };
    const { result } = JSON.parse(String(await dispatch(call(method, params), exchange())));
    expect(theirs.result).toBeDefined();
    const wanted = methods[method].params.map((_, n) => theirs.result?.seen[n] ?? null);
    // What was left out is null there, and its default here.
    for (const [n, value] of (result.seen as unknown[]).entries())
      expect(wanted[n] === null && DEFAULTS.includes(value as never) ? value : wanted[n]).toEqual(value);
  });

  test("every method is among them", () => {
    expect(new Set(VALID.map(([method]) => method))).toEqual(new Set(names));
  });
});
