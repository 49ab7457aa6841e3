import { describe, expect, test } from "vitest";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

const gateway = await shareGateway();
const rpc = createRpc(gateway.url);
const LIST = JSON.stringify({ jsonrpc: "2.0", id: "a", method: "agent.list" });
const hello = { agentName: "main", message: "hi" };

describe("the records of a call", () => {
  const line = (requestId: string) => gateway.logged("request", { requestId });

  test("include an access line with the method, the caller, the turn and the error's name", async () => {
    const sent = await rpc.send({ jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: hello });
    const { turnId } = sent.json.result as { turnId: string };
    const usual = { surface: "rpc", status: 200, caller: "ops" };
    expect(await line(sent.requestId)).toMatchObject({ ...usual, operation: "agent.sendMessage", turnId });
    const missing = await rpc.send({ jsonrpc: "2.0", id: 1, method: "agent.status" });
    expect(await line(missing.requestId)).toMatchObject({
      ...usual,
      operation: "agent.status",
      error: "invalid-request",
    });
    const unknown = await rpc.send({ jsonrpc: "2.0", id: 1, method: "my.secret" });
    expect(await line(unknown.requestId)).toMatchObject({ ...usual, operation: "unknown", error: "method-not-found" });
    const batch = await rpc.send([{ jsonrpc: "2.0", id: 1, method: "my.secret" }, JSON.parse(LIST)]);
    expect(await line(batch.requestId)).toMatchObject({ ...usual, operation: "batch", error: "method-not-found" });
    const notification = await rpc.send({ jsonrpc: "2.0", method: "agent.list" });
    expect(await line(notification.requestId)).toMatchObject({ operation: "agent.list", status: 204 });
    expect(JSON.stringify(gateway.logs)).not.toContain("my.secret");
  });

  test("include each call that started work in the flight recorder, also each call of a batch", async () => {
    const call = (n: number) => ({
      jsonrpc: "2.0",
      id: n,
      method: "agent.sendMessage",
      params: { ...hello, userId: `u${n}` },
    });
    const alone = await rpc.send(call(1), { headers: { cookie: "a=secret", "x-mine": "kept" } });
    const batch = await rpc.send([call(2), JSON.parse(LIST), call(3)]);
    const turns = [alone.json, ...(batch.json as unknown as object[])].flatMap(
      (answer) => (answer as { result: { turnId?: string } }).result.turnId ?? [],
    );
    const { store } = gateway.gateway;
    for (const [n, turnId] of turns.entries()) {
      const { deliveryId = "" } = (await store.getTurn(turnId)) ?? {};
      const delivery = await store.getDelivery(deliveryId);
      expect(delivery).toMatchObject({ surface: "rpc", operation: "agent.sendMessage", method: "POST", path: "/rpc" });
      expect(delivery?.requestId).toBe(n === 0 ? alone.requestId : batch.requestId);
      expect(JSON.parse(delivery?.body ?? "")).toEqual(call(n + 1));
      expect(delivery?.headers).not.toMatch(/authorization|cookie/);
      if (n === 0) expect(delivery?.headers).toContain("x-mine: kept");
    }
    expect(turns).toHaveLength(3);
  });

  test("include a complete unexpected error in the log under the request's id, and none of it for the caller", async () => {
    const readConfig = () => Promise.reject(new TypeError("the disk has a name"));
    await using broken = await startGateway({ readConfig });
    const reply = await createRpc(broken.url).send({ jsonrpc: "2.0", id: 1, method: "system.reload" });
    expect(reply.text).not.toContain("disk");
    const logged = await broken.logged("unexpected.error", { requestId: reply.requestId });
    expect(JSON.stringify(logged)).toContain("the disk has a name");
  });
});
