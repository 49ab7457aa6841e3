import { describe, expect, test } from "vitest";
import type { Backend } from "#backends/backend.ts";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "../ws/socket.ts";
import { recorderOf } from "./recorder.ts";

function idOf({ json }: Reply): string {
  return String(json.deliveryId);
}
async function startWith(recorder: SomeConfig["recorder"], more: Parameters<typeof startGateway>[0] = {}) {
  const gateway = await startGateway({ ...more, config: { ...more.config, recorder } });
  const recorded = recorderOf(gateway);
  return Object.assign(gateway, {
    recorded,
    /** Sends an agent a message; returns its delivery after its turn has ended. */
    async tell(body: { message: string; session?: string }): Promise<string> {
      const { json } = await gateway.hooks.agent(body);
      await gateway.logged("turn.ended", { turnId: json.turnId });
      return String(json.deliveryId);
    },
    keptIds: async () => (await recorded.list({ limit: "500" })).map(({ delivery_id }) => delivery_id),
  });
}

describe("without bodies (recorder.bodies: false)", () => {
  const mappings = { push: { match: { "body.ref": "main" }, message: "{body.by} pushed" } };
  const config = { webhooks: { mappings } };

  test("a delivery has all other fields, and cannot be sent again", async () => {
    await using gateway = await startWith({ bodies: false }, { config });
    const { recorded, hooks } = gateway;
    const secret = "a word that nobody keeps";
    await gateway.rest.call("chat.send", { body: { message: secret, user_id: "ada" } });
    await createRpc(gateway.url).call("agent.sendMessage", { agentName: "main", message: secret });
    const sent = [
      await hooks.wake({ text: secret }),
      await hooks.agent({ message: secret }),
      await hooks.mapped({ ref: "main", by: "ada" }),
      await hooks.wake({ text: secret, surprise: 1 }),
    ];
    for (const { delivery_id, bytes } of await recorded.list()) {
      const { body, body_encoding, replayable, headers } = await recorded.get(delivery_id);
      expect([body, body_encoding, replayable]).toEqual([null, null, false]);
      expect(Number(headers["content-length"])).toBe(bytes);
    }
    expect(await recorded.list()).toHaveLength(6);
    expect((await recorded.replay(idOf(sent[0] as Reply))).error).toBe("delivery-not-replayable");
    const kept = await Promise.all((await gateway.keptIds()).map((id) => gateway.gateway.store.getDelivery(id)));
    expect(JSON.stringify(kept)).not.toContain(secret);
  });

  test("no answer or push about a delivery has text of its message, its reply or its tool calls", async () => {
    const content = { arguments: "sentinel arguments", result: "sentinel result" };
    const backend: Backend = {
      kind: "telling",
      models: undefined,
      async *run() {
        yield { note: { name: "tool.called", detail: { tool: "search", ok: true, ms: 1, ...content } } };
        yield { text: "sentinel reply" };
      },
      summarise: async () => "",
    };
    await using gateway = await startWith({ bodies: false }, { config, makeBackend: () => backend });
    const { recorded, hooks } = gateway;
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { gateway: null, deliveries: true });
    const mapped = (await hooks.mapped({ ref: "main", by: "sentinel" })).json;
    await gateway.logged("turn.ended", { turnId: mapped.turnId });
    const told = await gateway.tell({ message: "sentinel" });
    const woken = idOf(await hooks.wake({ text: "sentinel" }));
    const rows = await recorded.list();
    const whole = await Promise.all([String(mapped.deliveryId), told, woken].map(recorded.get));
    const pushed = () => [...socket.pushesOf("delivery.recorded"), ...socket.pushesOf("delivery.changed")];
    const ended = () => new Set(pushed().flatMap(({ delivery }) => (delivery.endedAt ? delivery.deliveryId : [])));
    await socket.until(() => ended().size === 2);
    expect(JSON.stringify([rows, whole, pushed()])).not.toContain("sentinel");
    for (const row of rows) expect(row).toMatchObject({ preview: null, reply_preview: null });
    const steps = new Map(whole[0]?.timeline.map(({ name, detail }) => [name, detail]));
    expect(steps.get("message.rendered")).toEqual({ mapping: "push", characters: "sentinel pushed".length });
    expect(steps.get("tool.called")).toMatchObject({ tool: "search", ok: true });
    expect(steps.get("turn.completed")).toHaveProperty("usage");
  });

  test("a delivery shows text if bodies were stored when it was recorded", async () => {
    await using gateway = await startWith({ bodies: false });
    await gateway.tell({ message: "before" });
    await gateway.reload({ recorder: { bodies: true } });
    await gateway.tell({ message: "after" });
    const previews = (await gateway.recorded.list()).map(({ preview, reply_preview }) => [preview, reply_preview]);
    expect(previews).toEqual([
      ["after", "after"],
      [null, null],
    ]);
  });

  test("the reason for an unmatched mapping has no text of a body", async () => {
    await using gateway = await startWith({ bodies: false }, { config });
    const { deliveryId } = (await gateway.hooks.named("push", { ref: "a-branch-of-mine" })).json;
    const { tried } = await gateway.recorded.detailOf(String(deliveryId), "mapping.tried");
    expect(tried).toMatchObject([{ mapping: "push", path: "body.ref", expected: ["main"] }]);
    expect(JSON.stringify(tried)).not.toContain("a-branch-of-mine");
  });

  test("takes effect at a reload: later requests have no body", async () => {
    await using gateway = await startWith({ bodies: true });
    const before = idOf(await gateway.hooks.agent({ message: "hi" }));
    await gateway.reload({ recorder: { bodies: false } });
    const after = idOf(await gateway.hooks.agent({ message: "hi" }));
    expect((await gateway.recorded.get(before)).body).not.toBeNull();
    expect((await gateway.recorded.get(after)).body).toBeNull();
  });
});

describe("the limits of the recorder", () => {
  test("remove no accepted request, whatever unauthenticated callers send", async () => {
    const mappings = {
      signed: { match: {}, message: "hi", verify: { type: "github", secret: "a-secret-of-the-sender" } },
    } as const;
    const config = { gateway: { trustedProxies: ["127.0.0.1"] }, webhooks: { mappings } };
    await using gateway = await startWith({ entries: 4 }, { config });
    const sent: string[] = [];
    for (let n = 0; n < 4; n++) sent.unshift(await gateway.tell({ message: `n${n}` }));
    const json = { "content-type": "application/json" };
    const asks: [string, RequestInit][] = [
      ["/hooks/wake", { method: "POST", headers: json, body: '{"text":"x"}' }],
      ["/hooks/signed", { method: "POST", headers: { ...json, "x-hub-signature-256": `sha256=${"0".repeat(64)}` } }],
      ["/hooks/nobody", { method: "POST", headers: json, body: "{}" }],
      ["/hooks/agent", { method: "GET" }],
      ["/api/v1/chat/send", { method: "POST", headers: json, body: '{"message":"x"}' }],
      ["/rpc", { method: "POST", headers: json, body: "[" }],
      ["/rpc/ws", { method: "GET" }],
    ];
    for (let n = 0; n < 15; n++) {
      const from = { "x-forwarded-for": `203.0.113.${n}`, "x-forwarded-proto": "https" };
      const all = asks.map(([path, ask]) =>
        fetch(gateway.url + path, { ...ask, headers: { ...ask.headers, ...from } }),
      );
      for (const answer of await Promise.all(all)) noteChecked(answer.headers.get("x-request-id") ?? "");
    }
    const accepted = await gateway.recorded.list({ limit: "500", outcome: "completed" });
    expect(accepted.map(({ delivery_id }) => delivery_id)).toEqual(sent);
    expect((await gateway.recorded.list({ outcome: "refused" })).length).toBeGreaterThan(4);
  });

  test("remove the oldest request first, over all requests", async () => {
    await using gateway = await startWith({ entries: 2 });
    const sent: string[] = [];
    for (let n = 0; n < 3; n++) sent.unshift(await gateway.tell({ message: `n${n}` }));
    expect(await gateway.keptIds()).toEqual(sent.slice(0, 2));
    const oldest = sent[2] as string;
    const { error } = await gateway.console.call("deliveries.get", { path: { delivery_id: oldest } });
    expect(error).toBe("delivery-not-found");
    expect((await gateway.recorded.list({ before: String(sent[0]) })).map(({ delivery_id }) => delivery_id)).toEqual([
      sent[1],
    ]);
    expect(await gateway.recorded.list({ before: oldest })).toEqual([]);
  });
});

describe("the end of a session", () => {
  test("erases the bodies of its requests, and the texts in their steps, but not the requests", async () => {
    const mappings = { push: { match: {}, message: "{body.by} pushed", session: "webhook:a" } };
    await using gateway = await startWith({}, { config: { webhooks: { mappings } } });
    const { recorded, hooks } = gateway;
    const mapped = idOf(await hooks.mapped({ by: "somebody-to-forget" }));
    const agent = await gateway.tell({ message: "somebody-to-forget", session: "webhook:a" });
    const other = await gateway.tell({ message: "kept", session: "webhook:b" });
    const rpc = createRpc(gateway.url);
    await rpc.call("session.delete", { sessionId: "webhook:a" });
    for (const id of [mapped, agent]) {
      const found = await recorded.get(id);
      expect(found).toMatchObject({ outcome: "gone", body: null, replayable: false, session_id: "webhook:a" });
      expect(JSON.stringify(found)).not.toContain("somebody-to-forget");
      expect(found.timeline.map(({ name }) => name)).toContain("token.accepted");
    }
    expect(await recorded.get(other)).toMatchObject({
      outcome: "completed",
      body: '{"message":"kept","session":"webhook:b"}',
    });
    const kept = await Promise.all([mapped, agent].map((id) => gateway.gateway.store.getDelivery(id)));
    expect(JSON.stringify(kept)).not.toContain("somebody-to-forget");
  });
});
