import type { IncomingHttpHeaders } from "node:http";
import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { ConnectionError, createRpcClient, RpcError } from "#generated/clients/rpc.ts";
import { serve } from "./serve.ts";

/** A server for one test, which answers what `answer` gives; what it is asked is kept. */
async function answering(answer: (body: unknown) => unknown) {
  const seen: { body: unknown; headers: IncomingHttpHeaders }[] = [];
  const { url, ...served } = await serve(async (req, res) => {
    const body = await json(req);
    seen.push({ body, headers: req.headers });
    const given = await answer(body);
    if (given === undefined) res.writeHead(204).end();
    else if (given instanceof Response) res.writeHead(given.status).end(await given.text());
    else res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(given));
  });
  return { ...served, url: `${url}/rpc`, seen };
}

const respond = (id: unknown, result: unknown) => ({ jsonrpc: "2.0", id, result });
const refuse = (id: unknown, error: unknown) => ({ jsonrpc: "2.0", id, error });

describe("over HTTP", () => {
  test("an error has its code, name, detail and when to try again", async () => {
    const data = { name: "session-busy", detail: "100 turns wait", requestId: "req_1", retryAfterMs: 1500 };
    await using server = await answering((body) =>
      refuse((body as { id: string }).id, { code: -32004, message: "Session busy", data }),
    );
    const error: unknown = await createRpcClient({ url: server.url, token: "" })
      .agent.list()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({
      code: -32004,
      name: "session-busy",
      message: "Session busy: 100 turns wait",
      detail: "100 turns wait",
      requestId: "req_1",
      retryAfterMs: 1500,
    });
  });

  test("a refusal of the whole message is an RpcError too", async () => {
    const error = { code: -32000, message: "Authentication failed", data: { name: "unauthenticated" } };
    await using server = await answering(() => Response.json(refuse(null, error), { status: 401 }));
    await expect(createRpcClient({ url: server.url, token: "" }).system.info()).rejects.toMatchObject({
      name: "unauthenticated",
    });
  });

  test("a batch is one message; each call succeeds or fails alone, in the order of the calls", async () => {
    await using server = await answering((body) => {
      const [first, second] = body as { id: string }[];
      return [
        refuse(second?.id, { code: -32002, message: "Agent not found", data: { name: "agent-not-found" } }),
        respond(first?.id, { agents: [] }),
      ];
    });
    const client = createRpcClient({ url: server.url, token: "" });
    const [list, status] = await client.batch([["agent.list"], ["agent.status", { agentName: "x" }]]);
    expect(list).toEqual({ ok: true, result: { agents: [] } });
    expect(status).toMatchObject({ ok: false, error: { name: "agent-not-found" } });
    expect(server.seen).toHaveLength(1);
    expect(await client.batch([])).toEqual([]);
    expect(server.seen).toHaveLength(1);
  });

  test("a notification has no id and waits for no answer", async () => {
    await using server = await answering(() => undefined);
    await createRpcClient({ url: server.url, token: "" }).notify("agent.sendMessage", {
      agentName: "main",
      message: "hi",
    });
    expect(server.seen[0]?.body).toEqual({
      jsonrpc: "2.0",
      method: "agent.sendMessage",
      params: { agentName: "main", message: "hi" },
    });
  });

  test("an answer that is no JSON-RPC, a missing server and a late answer are ConnectionErrors", async () => {
    await using server = await answering(() => new Response("<html>", { status: 502 }));
    await expect(createRpcClient({ url: server.url, token: "" }).agent.list()).rejects.toThrow(
      new ConnectionError("HTTP 502 without a JSON-RPC response"),
    );
    const closed = await serve(async () => {});
    await closed[Symbol.asyncDispose]();
    const gone = createRpcClient({ url: `${closed.url}/rpc`, token: "" });
    const failed: unknown = await gone.agent.list().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ConnectionError);
    expect(String(failed)).toMatch(
      /^ConnectionError: agent\.list: no answer from http:\/\/127\.0\.0\.1:(\d+)\/rpc: connect ECONNREFUSED 127\.0\.0\.1:\1$/,
    );
    await using silent = await answering(() => new Promise(() => {}));
    const slow = createRpcClient({ url: silent.url, token: "", timeoutMs: 50 }).agent.list();
    await expect(slow).rejects.toThrow(new ConnectionError("no answer within 50 ms"));
  });

  test("a caller can give up", async () => {
    await using server = await answering(() => new Promise(() => {}));
    const call = createRpcClient({ url: server.url, token: "" }).agent.list({}, { signal: AbortSignal.timeout(20) });
    await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
