import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { type SomeConfig, shareGateway, startGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { senders } from "#test/harness/senders.ts";
import { recorderOf } from "./recorder.ts";

const SECRET = senders.github.makeSecret("replayed");
const GITHUB = { "x-github-event": "push" };
type Mappings = NonNullable<NonNullable<SomeConfig["webhooks"]>["mappings"]>;
const push = { match: { "headers.x-github-event": "push", "body.ref": "main" }, message: "{body.by} pushed" };
function configWith(mappings: Mappings, more: SomeConfig = {}): SomeConfig {
  return { ...more, webhooks: { mappings } };
}

const gateway = await shareGateway({
  config: configWith({ push, signed: { ...push, verify: { type: "github", secret: SECRET } } }),
});
const { hooks, console } = gateway;
const recorder = recorderOf(gateway);
function idOf({ json }: Reply): string {
  return String(json.deliveryId);
}
async function turnOf(turn_id: unknown) {
  return (await gateway.rest.call("turns.get", { path: { turn_id: String(turn_id) } })).json;
}

describe("deliveries.replay", () => {
  test("of a wake queues its event again, as a delivery that names the first one and the caller", async () => {
    const woken = await hooks.wake({ text: "the disk is full", metadata: { disk: 1 } });
    const { json } = await recorder.replay(idOf(woken), gateway.adminKey);
    expect(json).toMatchObject({ replay_of: idOf(woken), outcome: "queued", message: "event queued", agent: "main" });
    const event = await console.call("events.get", { path: { event_id: String(json.event_id) } });
    expect(event.json).toMatchObject({ text: "the disk is full", metadata: { disk: 1 }, caller: "admin" });
    expect(event.json.event_id).not.toBe(woken.json.eventId);
    const again = await recorder.get(String(json.delivery_id));
    const given = await recorder.get(idOf(woken));
    expect(again).toMatchObject({
      replay_of: idOf(woken),
      caller: "admin",
      event_id: json.event_id,
      outcome: "queued",
    });
    for (const field of ["surface", "operation", "method", "path", "headers", "body", "bytes"] as const)
      expect([field, again[field]]).toEqual([field, given[field]]);
    expect(again.timeline.map(({ name }) => name)).toEqual(["request.replayed", "event.queued"]);
    expect(await recorder.detailOf(again.delivery_id, "request.replayed")).toMatchObject({
      replay_of: idOf(woken),
      by: "admin",
    });
    expect(given.timeline.at(-1)).toMatchObject({
      name: "request.sent-again",
      detail: { delivery_id: json.delivery_id, by: "admin" },
    });
  });

  test.each([
    ["of the replayed request", "2", "1", 2],
    ["of the request for the replay", "1", "2", 2],
    ["of the request for the replay, if the other has none", undefined, "1", 1],
  ])("has the larger number of hops: %s", async (_, first, second, hops) => {
    const puppet = createPuppet();
    await using own = await startGateway({ makeBackend: () => puppet.backend });
    const of = (number: string | undefined): Record<string, string> => (number ? { "x-gateway-hops": number } : {});
    const sent = await own.hooks.agent({ message: "look" }, { headers: of(first) });
    (await puppet.next()).end();
    const path = { delivery_id: idOf(sent) };
    await own.rest.call("deliveries.replay", { key: own.adminKey, path, body: {}, headers: of(second) });
    const run = await puppet.next();
    expect(run.turn.hops).toBe(hops);
    run.end();
  });

  test("of a hook for an agent starts its turn again, in the session that it named", async () => {
    const body = { message: "look", session: "webhook:again", context: { region: "eu" } };
    const sent = await hooks.agent(body);
    const { json } = await recorder.replay(idOf(sent));
    expect(json).toMatchObject({ outcome: "queued", session_id: "webhook:again", agent: "main", mapping: null });
    expect(json.turn_id).not.toBe(sent.json.turnId);
    await gateway.logged("turn.ended", { turnId: json.turn_id });
    expect(await turnOf(json.turn_id)).toMatchObject({
      status: "completed",
      reply: "look",
      delivery_id: json.delivery_id,
    });
  });

  test("of a mapped payload uses the current mappings, with the stored headers", async () => {
    const config = configWith({ push: { ...push, message: "then: {body.by}" } });
    await using changing = await startGateway({ config });
    const recorder = recorderOf(changing);
    const sent = await changing.hooks.mapped({ ref: "main", by: "ada" }, { headers: GITHUB });
    const all = { match: {}, message: "all: {body.by}" };
    await changing.reload(configWith({ "new-first": { ...all, match: { "body.by": "ada" } }, push }));
    await changing.logged("config.reloaded");
    const { json } = await recorder.replay(idOf(sent));
    expect(json).toMatchObject({ outcome: "queued", mapping: "new-first" });
    expect(await recorder.detailOf(String(json.delivery_id), "message.rendered")).toMatchObject({
      message: "all: ada",
    });
    await changing.reload(configWith({ other: { ...all, match: { "headers.x-github-event": "push" } } }));
    await changing.until(() => changing.linesOf("config.reloaded")[1]);
    expect((await recorder.replay(idOf(sent))).json).toMatchObject({ outcome: "queued", mapping: "other" });
  });

  test("of a signed request checks no signature, however old it is, and no idempotency key", async () => {
    const body = JSON.stringify({ ref: "main", by: "ada" });
    const headers = { ...GITHUB, ...(await senders.github.sign(SECRET, body, { id: "once-only" })) };
    const sent = await hooks.named("signed", body, { token: null, headers });
    const turns = new Set([sent.json.turnId]);
    for (let n = 0; n < 3; n++) {
      const { json } = await recorder.replay(idOf(sent));
      expect(json).toMatchObject({ outcome: "queued", mapping: "signed" });
      turns.add(json.turn_id);
      expect(await recorder.get(String(json.delivery_id))).toMatchObject({ sender_id: "once-only", caller: "console" });
    }
    expect(turns.size).toBe(4);
    expect(await recorder.list({ id: "once-only" })).toHaveLength(4);
    const again = await hooks.named("signed", body, { token: null, headers });
    expect(again.json.turnId).toBe(sent.json.turnId);
  });

  test("of a payload that no current mapping matches starts nothing, says so, and is recorded", async () => {
    for (const sent of [await hooks.mapped({ ref: "x" }), await hooks.named("push", { ref: "x" })]) {
      const deliveryId = (await recorder.newest({ id: sent.requestId })).delivery_id;
      const { status, json } = await recorder.replay(deliveryId);
      expect([status, json.outcome, json.message, json.turn_id]).toEqual([
        200,
        "unmatched",
        "no mapping matched",
        null,
      ]);
      const again = await recorder.get(String(json.delivery_id));
      expect(again).toMatchObject({ outcome: "unmatched", replay_of: deliveryId, turn_id: null });
      expect(again.timeline.map(({ name }) => name)).toEqual(["request.replayed", "mapping.tried"]);
    }
  });

  test("of a replay works as well, and names the replay", async () => {
    const sent = await hooks.agent({ message: "twice" });
    const first = (await recorder.replay(idOf(sent))).json;
    const second = (await recorder.replay(String(first.delivery_id))).json;
    expect(second).toMatchObject({ outcome: "queued", replay_of: first.delivery_id });
  });

  test("of a refused request works once there is room", async () => {
    const puppet = createPuppet();
    const config: SomeConfig = { limits: { turnsPerSession: 1 } };
    await using tight = await startGateway({ config, makeBackend: () => puppet.backend });
    const recorder = recorderOf(tight);
    const send = (message: string) => tight.hooks.agent({ message, session: "webhook:tight" });
    await send("runs");
    await send("waits");
    const refused = await send("comes too late");
    expect(refused.error).toBe("session-busy");
    const { delivery_id } = await recorder.newest({ outcome: "refused" });
    expect((await recorder.replay(delivery_id)).error).toBe("session-busy");
    const [replayed] = await recorder.list({ outcome: "refused" });
    expect(replayed).toMatchObject({ replay_of: delivery_id, status: 429, caller: "console" });
    expect(await recorder.detailOf(delivery_id, "request.sent-again")).toEqual({
      delivery_id: replayed?.delivery_id,
      by: "console",
    });
    expect(await recorder.detailOf(String(replayed?.delivery_id), "request.refused")).toMatchObject({
      error: "session-busy",
    });
    (await puppet.next()).end();
    const next = await puppet.next();
    const { json } = await recorder.replay(delivery_id);
    expect(json.outcome).toBe("queued");
    next.end();
    expect((await puppet.next()).turn.message.text).toBe("comes too late");
  });

  test("stores no body if bodies are now off, and then cannot be replayed itself", async () => {
    await using changing = await startGateway();
    const recorder = recorderOf(changing);
    const sent = await changing.hooks.agent({ message: "kept" });
    await changing.reload({ recorder: { bodies: false } });
    const { json } = await recorder.replay(idOf(sent));
    expect(json.outcome).toBe("queued");
    expect(await recorder.get(String(json.delivery_id))).toMatchObject({ body: null, replayable: false });
    expect((await recorder.replay(String(json.delivery_id))).error).toBe("delivery-not-replayable");
  });

  test("is not counted in the rate limits of webhooks", async () => {
    const webhooks = { rateLimit: { maxRequests: 1, windowMs: 60_000 } };
    await using limited = await startGateway({ config: { webhooks } });
    const recorder = recorderOf(limited);
    const sent = await limited.hooks.agent({ message: "one" });
    expect((await limited.hooks.agent({ message: "two" })).error).toBe("rate-limited");
    for (let n = 0; n < 3; n++) expect((await recorder.replay(idOf(sent))).status).toBe(200);
  });
});

describe("deliveries.replay with an edited body", () => {
  const send = async (sent: Reply, body: unknown, type = "application/json") =>
    console.call("deliveries.replay", {
      path: { delivery_id: idOf(sent) },
      body,
      headers: body === undefined ? {} : { "content-type": type },
    });
  const edit = async (sent: Reply, body: unknown) => send(sent, { body });

  test("sends that body instead of the stored one, and the timeline says so", async () => {
    const sent = await hooks.mapped({ ref: "main", by: "ada" }, { headers: GITHUB });
    const { json } = await edit(sent, { ref: "main", by: "grace" });
    expect(json).toMatchObject({ outcome: "queued", mapping: "push", replay_of: idOf(sent) });
    const again = await recorder.get(String(json.delivery_id));
    const body = '{"ref":"main","by":"grace"}';
    expect(again).toMatchObject({ body, bytes: body.length, replayable: true });
    expect(again.timeline.slice(0, 2).map(({ name, detail }) => [name, detail?.bytes])).toEqual([
      ["request.replayed", undefined],
      ["request.edited", body.length],
    ]);
    expect(await recorder.detailOf(again.delivery_id, "message.rendered")).toMatchObject({ message: "grace pushed" });
    expect((await recorder.get(idOf(sent))).body).toContain("ada");
    const twice = (await recorder.replay(again.delivery_id)).json;
    expect((await recorder.get(String(twice.delivery_id))).body).toBe(body);
  });

  test("restores the stored secrets where the body still has [hidden], and only there", async () => {
    const config = configWith({ push: { match: {}, message: "{body.token} {body.note} {body.hooks.0.secret}" } });
    await using keeping = await startGateway({ config });
    const recorder = recorderOf(keeping);
    const sent = await keeping.hooks.mapped({ token: "t-1", note: "n", hooks: [{ secret: "s-1" }] });
    const shown = JSON.parse(String((await recorder.get(idOf(sent))).body)) as object;
    expect(shown).toEqual({ token: "[hidden]", note: "n", hooks: [{ secret: "[hidden]" }] });
    const body = { body: { ...shown, note: "m", other: "[hidden]" } };
    const { json } = await keeping.console.call("deliveries.replay", { path: { delivery_id: idOf(sent) }, body });
    const { message } = await recorder.detailOf(String(json.delivery_id), "message.rendered");
    expect(message).toBe("t-1 m s-1");
  });

  test("refuses a body that the operation does not accept, and records the refusal", async () => {
    const sent = await hooks.wake({ text: "hi" });
    const { error, problem } = await edit(sent, { text: 7 });
    expect([error, problem.errors]).toEqual(["invalid-request", [{ pointer: "/text", message: "must be a string" }]]);
    const refused = await recorder.newest({ outcome: "refused" });
    expect(refused).toMatchObject({ replay_of: idOf(sent), status: 400, bytes: 10 });
    expect(await recorder.get(refused.delivery_id)).toMatchObject({ body: '{"text":7}' });
  });

  test("takes an empty object, blanks or nothing for the stored body, with any content type", async () => {
    const sent = await hooks.wake({ text: "hi" });
    for (const [body, type] of [
      [undefined, undefined],
      ["", "text/plain"],
      [" {} ", "application/x-www-form-urlencoded"],
      ["{}", "application/json"],
    ] as const) {
      const { status, json } = await send(sent, body, type);
      expect([body, status]).toEqual([body, 200]);
      expect(await recorder.names(String(json.delivery_id))).toEqual(["request.replayed", "event.queued"]);
    }
  });

  test.each([
    ["unknown fields", '{"again":true}', "application/json", "invalid-request"],
    ["a body that is not an object", '{"body":"text"}', "application/json", "invalid-request"],
    ["no JSON", '{"body":', "application/json", "parse-error"],
    ["another content type", '{"body":{"text":"hi"}}', "text/plain", "unsupported-media-type"],
  ])("refuses %s", async (_what, body, type, error) => {
    expect((await send(await hooks.wake({ text: "hi" }), body, type)).error).toBe(error);
  });
});

describe("a delivery that cannot be sent again", () => {
  const refused = async (deliveryId: string): Promise<string | undefined> => {
    expect((await recorder.get(deliveryId)).replayable).toBe(false);
    const { error, problem } = await recorder.replay(deliveryId);
    expect(error).toBe("delivery-not-replayable");
    return problem.detail;
  };

  test("is one of REST or RPC: its client can repeat it", async () => {
    await gateway.rest.call("chat.send", { body: { message: "hi" } });
    expect(await refused((await recorder.newest({ surface: "rest" })).delivery_id)).toMatch(/only webhooks/);
    await createRpc(gateway.url).call("agent.sendMessage", { agentName: "main", message: "hi" });
    expect(await refused((await recorder.newest({ surface: "rpc" })).delivery_id)).toMatch(/only webhooks/);
  });

  test("is one of an unauthenticated caller", async () => {
    const { requestId } = await hooks.agent({ message: "hi" }, { token: null });
    expect(await refused((await recorder.newest({ id: requestId })).delivery_id)).toMatch(
      /The sender was not authenticated/,
    );
  });

  test("is one whose body was deleted with its session", async () => {
    const sent = await hooks.agent({ message: "hi", session: "webhook:erased" });
    await gateway.gateway.store.deleteSession("webhook:erased", Date.now());
    expect(await refused(idOf(sent))).toMatch(/session was deleted/);
    expect((await recorder.get(idOf(sent))).outcome).toBe("gone");
  });

  test("is a challenge of a sender", async () => {
    const secret = senders.slack.makeSecret("challenged");
    const verify = { type: "slack", secret } as const;
    await using slack = await startGateway({ config: configWith({ slack: { match: {}, message: "x", verify } }) });
    const body = JSON.stringify({ type: "url_verification", token: "verification-token", challenge: "c" });
    await slack.hooks.named("slack", body, { token: null, headers: await senders.slack.sign(secret, body) });
    const recorder = recorderOf(slack);
    const { delivery_id, outcome } = await recorder.newest();
    expect([outcome, (await recorder.replay(delivery_id)).error]).toEqual(["challenge", "delivery-not-replayable"]);
  });
});

describe("a replay that the current configuration refuses", () => {
  test("answers invalid-request if the contract refuses the stored request, as it did then", async () => {
    const { requestId } = await hooks.wake({ text: "", surprise: 1 });
    const { delivery_id } = await recorder.newest({ id: requestId });
    expect((await recorder.replay(delivery_id)).error).toBe("invalid-request");
    const broken = await hooks.wake("{");
    const other = await recorder.newest({ id: broken.requestId });
    expect((await recorder.replay(other.delivery_id)).error).toBe("parse-error");
  });
});
