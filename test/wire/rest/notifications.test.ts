import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import type { RestReplies } from "#generated/rest-handlers.ts";
import { answer, type Behaviour, hang, reset, startReceiver } from "#test/channels/receiver.ts";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";

const SECRET = `whsec_${Buffer.from("the secret of an endpoint").toString("base64")}`;

async function startWith(behave: readonly Behaviour[]) {
  const receiver = await startReceiver(behave);
  const notify = { ops: { url: `${receiver.url}/`, secret: SECRET, events: ["turn.*"] } };
  const gateway = await startGateway({ config: { notify } });
  return {
    ...gateway,
    receiver,
    send: async () => String((await gateway.rest.call("chat.send", { body: { message: "hi" } })).json.turn_id),
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}
async function list({ console }: TestGateway, query: Record<string, string> = {}) {
  return (await console.call("notifications.list", { query })).json as unknown as RestReplies["notifications.list"];
}
/** The notifications in a state, once there are some. */
async function listed(gateway: TestGateway, state: string, count = 1) {
  for (;;) {
    const { notifications } = await list(gateway, { state });
    if (notifications.length >= count) return notifications;
  }
}
function idOf(turnId: string): string {
  return `${turnId.replace("turn_", "ntf_")}.ops`;
}

describe("notifications.list", () => {
  test("shows a delivered notification", async () => {
    await using gateway = await startWith([answer(204)]);
    const turn_id = await gateway.send();
    const [shown] = await listed(gateway, "delivered");
    expect(shown).toMatchObject({
      notification_id: idOf(turn_id),
      webhook_id: turn_id.replace("turn_", "ntf_"),
      endpoint: "ops",
      type: "turn.completed",
      agent: "main",
      turn_id,
      attempts: 1,
      status: 204,
      reason: null,
      next_attempt_at: null,
    });
    expect(Date.parse(String(shown?.ended_at))).toBeGreaterThanOrEqual(Date.parse(String(shown?.created_at)));
  });

  test("lists notifications newest first, each once over all pages, filtered by endpoint and state", async () => {
    await using gateway = await startWith([answer(204)]);
    const sent: string[] = [];
    for (let n = 0; n < 5; n++) sent.unshift(idOf(await gateway.send()));
    await listed(gateway, "delivered", 5);
    const paged: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await list(gateway, { limit: "2", ...(cursor && { cursor }) });
      paged.push(...page.notifications.map(({ notification_id }) => notification_id));
      cursor = page.next_cursor;
    } while (cursor);
    expect(paged).toEqual(sent);
    expect((await list(gateway, { endpoint: "ops", state: "delivered" })).notifications).toHaveLength(5);
    expect((await list(gateway, { endpoint: "other" })).notifications).toEqual([]);
    expect((await list(gateway, { state: "failed" })).notifications).toEqual([]);
    const { error } = await gateway.console.call("notifications.list", { query: { cursor: "djE6MDE" } });
    expect(error).toBe("invalid-request");
  });
});

describe("notifications.replay", () => {
  test("sends a delivered notification again, with the same id and body", async () => {
    await using gateway = await startWith([answer(204)]);
    const turn_id = await gateway.send();
    await listed(gateway, "delivered");
    const path = { notification_id: idOf(turn_id) };
    const { status, json } = await gateway.console.call("notifications.replay", { path, key: gateway.adminKey });
    expect([status, json]).toMatchObject([
      202,
      { ...path, state: "waiting", attempts: 0, status: null, ended_at: null },
    ]);
    await gateway.receiver.received(2);
    const [first, second] = gateway.receiver.requests;
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    expect(String(second?.body)).toBe(String(first?.body));
  });

  test("sends one that is retried at once", async () => {
    await using gateway = await startWith([answer(500), answer(204)]);
    const notification_id = idOf(await gateway.send());
    await listed(gateway, "retrying");
    await gateway.console.call("notifications.replay", { path: { notification_id } });
    expect(await listed(gateway, "delivered")).toMatchObject([{ notification_id, attempts: 2 }]);
  });

  test("refuses one that is not stored, and one whose endpoint was removed", async () => {
    await using gateway = await startWith([answer(204)]);
    const notification_id = idOf(await gateway.send());
    await listed(gateway, "delivered");
    const replay = async (id: string) =>
      (await gateway.console.call("notifications.replay", { path: { notification_id: id } })).error;
    expect(await replay("ntf_none.ops")).toBe("notification-not-found");
    await gateway.reload({});
    expect(await replay(notification_id)).toBe("notification-not-replayable");
  });
});

describe("notifications.test", () => {
  const tested = async ({ console }: TestGateway, name = "ops") =>
    await console.call("notifications.test", { path: { name } });

  test("sends a signed event at once, and returns the answer", async () => {
    await using gateway = await startWith([answer(204)]);
    const { json } = await tested(gateway);
    expect(json).toMatchObject({ delivered: true, status: 204, reason: null });
    const [request] = gateway.receiver.requests;
    const event = new Webhook(SECRET).verify(String(request?.body), request?.headers ?? {});
    expect(event).toMatchObject({ type: "notify.test", data: { endpoint: "ops" } });
    expect((await list(gateway)).notifications).toEqual([]);
  });

  test("returns the reason if the receiver refuses it or closes the connection", async () => {
    await using gateway = await startWith([answer(401), reset, hang]);
    expect((await tested(gateway)).json).toMatchObject({ delivered: false, status: 401, reason: "HTTP 401" });
    expect((await tested(gateway)).json).toMatchObject({ delivered: false, status: null, reason: expect.any(String) });
  });

  test("refuses a name that is not configured, and names the nearest", async () => {
    await using gateway = await startWith([answer(204)]);
    const { error, json } = await tested(gateway, "opps");
    expect([error, json.detail]).toEqual(["endpoint-not-found", expect.stringContaining("`ops`")]);
  });
});
