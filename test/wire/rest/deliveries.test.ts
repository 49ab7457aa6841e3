import { describe, expect, test } from "vitest";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { senders } from "#test/harness/senders.ts";
import { recorderOf, type Summary } from "./recorder.ts";

const SECRET = senders.github.makeSecret("listed");
const gateway = await shareGateway({
  config: {
    webhooks: {
      mappings: {
        push: { match: { "body.ref": "main" }, message: "{body.by} pushed", session: "webhook:pushes" },
        signed: { match: {}, message: "{body.n}", verify: { type: "github", secret: SECRET } },
      },
    },
  },
});
const { hooks } = gateway;
const rpc = createRpc(gateway.url);
const recorder = recorderOf(gateway);

function idsOf(deliveries: readonly Summary[]): string[] {
  return deliveries.map(({ delivery_id }) => delivery_id);
}
function idOf({ json }: Reply): string {
  return String(json.deliveryId);
}

describe("deliveries.list", () => {
  test("has the requests of every surface, newest first, with their outcomes", async () => {
    await using alone = await startGateway();
    await alone.rest.call("chat.send", { body: { message: "hi" } });
    await createRpc(alone.url).call("agent.sendMessage", { agentName: "main", message: "hi", wait: true });
    await alone.hooks.wake({ text: "hi" });
    await alone.hooks.mapped({ any: 1 });
    await alone.hooks.agent({ message: "hi" }, { token: null });
    const found = await recorderOf(alone).list();
    expect(found.map(({ surface, operation, outcome, caller }) => [surface, operation, outcome, caller])).toEqual([
      ["hooks", "hooks.agent", "refused", null],
      ["hooks", "hooks.mapped", "unmatched", "shared"],
      ["hooks", "hooks.wake", "queued", "shared"],
      ["rpc", "agent.sendMessage", "completed", "ops"],
      ["rest", "chat.send", "completed", "tests"],
    ]);
  });

  test("passes each filter and each type of id to the store", async () => {
    const body = JSON.stringify({ n: 1 });
    const headers = await senders.github.sign(SECRET, body, { id: "a-delivery-of-github" });
    const signed = await hooks.named("signed", body, { token: null, headers });
    const pushed = await hooks.mapped({ ref: "main", by: "ada" });
    const missed = await hooks.named("push", { ref: "other" });
    const woken = await hooks.wake({ text: "hi" }, { headers: { "idempotency-key": "a key of mine" } });
    const { at } = await recorder.get(idOf(woken));
    const since = new Date(Date.parse(at) + 1).toISOString();
    const found: [query: Record<string, unknown>, replies: readonly Reply[]][] = [
      [{ mapping: "push" }, [missed, pushed]],
      [{ mapping: "push", outcome: "unmatched" }, [missed]],
      [{ mapping: "push", surface: "rest" }, []],
      [{ session_id: "webhook:pushes" }, [pushed]],
      [{ mapping: "push", to: since }, [missed, pushed]],
      [{ mapping: "push", from: since }, []],
      ...[idOf(signed), signed.requestId, signed.json.turnId, signed.json.sessionId, "a-delivery-of-github"].map(
        (id): [Record<string, unknown>, Reply[]] => [{ id }, [signed]],
      ),
      ...[idOf(woken), woken.requestId, woken.json.eventId, "a key of mine"].map(
        (id): [Record<string, unknown>, Reply[]] => [{ id }, [woken]],
      ),
      [{ id: "nobody's" }, []],
    ];
    for (const [query, replies] of found)
      expect([query, idsOf(await recorder.list(query as Record<string, string>))]).toEqual([query, replies.map(idOf)]);
  });
});

describe("deliveries.get", () => {
  test("shows a webhook unchanged with everything that resulted", async () => {
    const sent = { ref: "main", by: "grace" };
    const { deliveryId, turnId } = (await hooks.mapped(sent, { headers: { "x-mine": "kept", "X-Two": "b" } })).json;
    await gateway.logged("turn.ended", { turnId });
    const found = await recorder.get(String(deliveryId));
    expect(found).toMatchObject({
      surface: "hooks",
      operation: "hooks.mapped",
      method: "POST",
      path: "/hooks",
      address: "127.0.0.1",
      caller: "shared",
      outcome: "completed",
      mapping: "push",
      session_id: "webhook:pushes",
      turn_id: turnId,
      body: JSON.stringify(sent),
      body_encoding: "utf-8",
      bytes: JSON.stringify(sent).length,
      replayable: true,
    });
    expect(found.headers).toMatchObject({ "content-type": "application/json", "x-mine": "kept", "x-two": "b" });
    expect(found.timeline.map(({ name }) => name)).toEqual([
      "request.received",
      "token.accepted",
      "mapping.tried",
      "message.rendered",
      "turn.queued",
      "turn.started",
      "turn.completed",
    ]);
    expect(await recorder.detailOf(String(deliveryId), "message.rendered")).toMatchObject({ message: "grace pushed" });
    expect(await recorder.detailOf(String(deliveryId), "turn.completed")).toMatchObject({
      reply: "grace pushed",
      usage: { input: 3, output: 3, total: 6 },
    });
  });

  test("shows a body that is not UTF-8 in base64", async () => {
    const bytes = new Uint8Array([123, 34, 255, 34, 125]);
    const { requestId, error } = await hooks.wake(bytes);
    expect(error).toBe("parse-error");
    const { delivery_id } = await recorder.newest({ id: requestId });
    const { body, body_encoding } = await recorder.get(delivery_id);
    expect([body, body_encoding]).toEqual([Buffer.from(bytes).toString("base64"), "base64"]);
  });

  test("shows each call of a batch over RPC as its own delivery", async () => {
    const call = (id: number) => ({
      jsonrpc: "2.0",
      id,
      method: "agent.sendMessage",
      params: { agentName: "main", message: `m${id}`, userId: `u${id}`, wait: true },
    });
    const { requestId } = await rpc.send([call(1), call(2)]);
    const found = await recorder.list({ id: requestId });
    const bodies = await Promise.all(found.map(async ({ delivery_id }) => (await recorder.get(delivery_id)).body));
    expect(bodies.map((body) => JSON.parse(String(body)))).toEqual([call(2), call(1)]);
  });

  test("shows how its turn failed", async () => {
    const agents = { main: { backend: "echo", echo: { failTimes: 9, fail: "out of order" } } } as const;
    await using failing = await startGateway({ config: { agents } });
    const { turn_id } = (await failing.rest.call("chat.send", { body: { message: "hi" } })).problem;
    const recorder = recorderOf(failing);
    const { delivery_id, outcome } = await recorder.newest({ id: String(turn_id) });
    expect(outcome).toBe("failed");
    expect(await recorder.detailOf(delivery_id, "turn.failed")).toMatchObject({
      error: "turn-failed",
      detail: "out of order",
    });
  });
});
