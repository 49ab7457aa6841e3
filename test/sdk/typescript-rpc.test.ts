import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { GatewayError, RpcClient } from "#generated/clients/typescript/src/rpc.ts";
import { serve } from "./serve.ts";

type RpcRequest = { id: string; method: string; params: Record<string, unknown> };

/** A server that answers with the result of `answer`, and stores the requests, and a client for it. */
async function answering(answer: (body: unknown, nth: number) => unknown, options: object = {}) {
  const seen: unknown[] = [];
  const { url, ...served } = await serve(async (req, res) => {
    const body = await json(req);
    seen.push(body);
    const given = await answer(body, seen.length);
    const headers = { "content-type": "application/json", "x-request-id": "req_9" };
    if (given === undefined) res.writeHead(204).end();
    else if (given === "cut") res.destroy();
    else if (given instanceof Response)
      res.writeHead(given.status, Object.fromEntries(given.headers)).end(await given.text());
    else res.writeHead(200, headers).end(JSON.stringify(given));
  });
  return {
    ...served,
    seen: seen as RpcRequest[],
    rpc: new RpcClient({ url, rpcToken: "t", maxRetries: 0, ...options }),
  };
}

function respond(id: unknown, result: unknown) {
  return { jsonrpc: "2.0", id, result };
}
function refuse(id: unknown, error: unknown) {
  return { jsonrpc: "2.0", id, error };
}
const busy = { name: "session-busy", detail: "100 turns wait", requestId: "req_1", retryAfterMs: 1 };

describe("over HTTP", () => {
  test("a result has the id of its request", async () => {
    await using server = await answering((body) => respond((body as RpcRequest).id, { agents: [] }));
    const result = await server.rpc.agent.list();
    expect([result, result.requestId]).toEqual([{ agents: [] }, "req_9"]);
    expect((await server.rpc.agent.list().withResponse()).response.status).toBe(200);
  });

  test("an error has its code, name, detail and the time of a retry", async () => {
    await using server = await answering((body) =>
      refuse((body as RpcRequest).id, { code: -32004, message: "Session busy", data: busy }),
    );
    const error: unknown = await server.rpc.agent.list().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({
      code: -32004,
      name: "session-busy",
      message: "rpc.agent.list: 100 turns wait",
      title: "Session busy",
      requestId: "req_1",
      retryAfterMs: 1,
    });
  });

  test("a refusal of the complete message is the error of the call", async () => {
    const error = { code: -32000, message: "Authentication failed", data: { name: "unauthenticated" } };
    await using server = await answering(() => Response.json(refuse(null, error), { status: 401 }));
    await expect(server.rpc.system.info()).rejects.toMatchObject({ name: "unauthenticated", status: 401 });
  });

  test("a message has one idempotency key for all attempts", async () => {
    await using server = await answering(
      (body, nth) => {
        if (nth === 1) return "cut";
        if (nth === 2) return refuse((body as RpcRequest).id, { code: -32004, message: "Session busy", data: busy });
        return respond((body as RpcRequest).id, { turnId: "turn_1" });
      },
      { maxRetries: 2 },
    );
    await server.rpc.agent.sendMessage({ agentName: "main", message: "hi" });
    const keys = server.seen.map(({ params }) => params.idempotencyKey);
    expect([keys.length, new Set(keys).size, typeof keys[0]]).toEqual([3, 1, "string"]);
    await server.rpc.agent.sendMessage({ agentName: "main", message: "hi" }, { idempotencyKey: "mine" });
    expect(server.seen[3]?.params.idempotencyKey).toBe("mine");
  });

  test("lists are read page by page", async () => {
    await using server = await answering((body) => {
      const { id, params } = body as RpcRequest;
      const next = params.cursor === undefined ? "c1" : null;
      return respond(id, { sessions: [{ sessionId: `s${params.cursor ?? ""}` }], nextCursor: next });
    });
    const ids: string[] = [];
    for await (const { sessionId } of server.rpc.session.list({ agentName: "main" })) ids.push(sessionId);
    expect(ids).toEqual(["s", "sc1"]);
    expect(server.seen.map(({ params }) => params)).toEqual([
      { agentName: "main" },
      { agentName: "main", cursor: "c1" },
    ]);
  });

  test("a batch is one message; each call succeeds or fails alone, in the order of the calls", async () => {
    await using server = await answering((body) => {
      const [first, second] = body as RpcRequest[];
      return [
        refuse(second?.id, { code: -32002, message: "Agent not found", data: { name: "agent-not-found" } }),
        respond(first?.id, { agents: [] }),
      ];
    });
    const [list, status] = await server.rpc.batch([["agent.list"], ["agent.status", { agentName: "x" }]]);
    expect(list).toEqual({ ok: true, result: { agents: [] } });
    expect(status).toMatchObject({ ok: false, error: { name: "agent-not-found" } });
    expect(server.seen).toHaveLength(1);
    expect(await server.rpc.batch([])).toEqual([]);
    expect(server.seen).toHaveLength(1);
  });

  test("a notification has no id and waits for no answer", async () => {
    await using server = await answering(() => undefined);
    await server.rpc.notify("agent.sendMessage", { agentName: "main", message: "hi" }, { idempotencyKey: "k" });
    expect(server.seen[0]).toEqual({
      jsonrpc: "2.0",
      method: "agent.sendMessage",
      params: { agentName: "main", message: "hi", idempotencyKey: "k" },
    });
  });

  test("an answer that is not JSON-RPC, and a late one, are reported in plain words", async () => {
    const page = () => new Response("<html>", { status: 502, headers: { "content-type": "text/html" } });
    await using server = await answering(page);
    await expect(server.rpc.agent.list()).rejects.toThrow(
      /answered 502 with text\/html in place of the gateway's own error/,
    );
    await using other = await answering(() => ({ hello: "world" }));
    await expect(other.rpc.agent.list()).rejects.toMatchObject({ name: "not-a-gateway" });
    await using silent = await answering(() => new Promise(() => {}));
    await expect(silent.rpc.agent.list({}, { timeoutMs: 50 })).rejects.toThrow(
      "rpc.agent.list: No answer came within 50 ms. The call may still take effect.",
    );
  });

  test("a caller can abort", async () => {
    await using server = await answering(() => new Promise(() => {}));
    const call = server.rpc.agent.list({}, { signal: AbortSignal.timeout(20) });
    await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
