import { describe, expect, test } from "vitest";
import { event, events, json, turnId } from "./answers.ts";
import { answering } from "./typescript-client.ts";

describe("a call", () => {
  test("sends each value in the place of the contract, with the token of its surface", async () => {
    await using server = await answering([
      json(200, { keys: [] }),
      (res) => res.writeHead(204).end(),
      json(200, {}),
      json(200, {}),
    ]);
    const { client, seen } = server;
    expect(await client.keys.list({ limit: 2 })).toEqual({ keys: [] });
    expect(await client.keys.revoke("key/1")).toBeUndefined();
    await client.hooks.mappedByName(
      "git hub",
      { ref: "main" },
      { idempotencyKey: "k", headers: { "x-github-event": "push" } },
    );
    await client.ops.healthz();
    expect(seen).toMatchObject([
      { method: "GET", url: "/api/v1/keys?limit=2", body: undefined, headers: { authorization: "Bearer secret" } },
      { method: "DELETE", url: "/api/v1/keys/key%2F1" },
      {
        method: "POST",
        url: "/hooks/git%20hub",
        body: { ref: "main" },
        headers: {
          authorization: "Bearer hook",
          "idempotency-key": "k",
          "content-type": "application/json",
          "x-github-event": "push",
        },
      },
      { url: "/healthz" },
    ]);
    expect(seen[3]?.headers).not.toHaveProperty("authorization");
  });

  test("is sent to the webhook path of the gateway", async () => {
    await using server = await answering([json(200, {}), json(200, {})], { webhookPath: "/in/hooks/" });
    await server.client.hooks.wake({ text: "up" });
    await server.client.hooks.mapped({});
    expect(server.seen.map(({ url }) => url)).toEqual(["/in/hooks/wake", "/in/hooks"]);
  });

  test("returns text if the contract has text", async () => {
    await using server = await answering(
      [(res) => res.writeHead(200, { "content-type": "text/plain" }).end("up 1\n")],
      { rpcToken: "r" },
    );
    expect(await server.client.ops.metrics()).toBe("up 1\n");
    expect(server.seen[0]?.headers.authorization).toBe("Bearer r");
  });

  test("has the request's id on its reply, not among its fields, and the response on request", async () => {
    await using server = await answering([json(200, { turn_id: turnId }), json(200, { turn_id: turnId })]);
    const turn = await server.client.turns.get(turnId);
    expect([turn.requestId, JSON.stringify(turn)]).toEqual(["req_9", `{"turn_id":"${turnId}"}`]);
    const { data, response, requestId } = await server.client.turns.get(turnId).withResponse();
    expect([data, response.status, requestId]).toEqual([{ turn_id: turnId }, 200, "req_9"]);
  });

  test("can be aborted, with the caller's own reason", async () => {
    const caller = new AbortController();
    await using server = await answering([() => caller.abort(new Error("the caller left"))]);
    await expect(server.client.skills.list({ signal: caller.signal })).rejects.toThrow("the caller left");
    await expect(server.client.skills.list({ signal: AbortSignal.abort(new Error("no")) })).rejects.toThrow("no");
    expect(server.seen).toHaveLength(1);
  });
});

test("a stream is closed when its reader stops", async () => {
  let closed = false;
  await using server = await answering([
    (res) => {
      res.on("close", () => {
        closed = true;
      });
      events("open", event("turn.started", "1"))(res);
    },
  ]);
  for await (const _ of server.client.chat.stream({ message: "hi" })) break;
  await expect.poll(() => closed).toBe(true);
});
