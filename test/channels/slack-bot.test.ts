import { describe, expect, it } from "vitest";
import type { Outcome } from "#channels/channel.ts";
import { createSlackBot } from "#channels/slack.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { senders } from "#test/harness/senders.ts";
import { callsOn, failed, replyOf, SECRET } from "./channel-under-test.ts";
import { answer, type Behaviour, endlessAnswer, hang, leave, stallAfter, startReceiver } from "./receiver.ts";

const OK = { ok: true, channel: "C1", ts: "1503435956.000247", message: { text: "hi" } };

function answerOf(body: unknown, headers: Record<string, string | number> = {}, status = 200): Behaviour {
  return answer(status, headers, JSON.stringify(body));
}
function refusedWith(error: string, code = 200): Outcome {
  return { kind: "refused", code, reason: `Slack answered ${error}` };
}

const { announceTo, openFor } = callsOn({
  name: "slack bot",
  open: (url, parts) => createSlackBot({ botToken: SECRET, url, to: "C0DEFAULT" }, parts),
});

describe("a bot of Slack", () => {
  it("posts the escaped text to the address and into the thread of the reply, with its token", async () => {
    await using receiver = await startReceiver([answerOf(OK)]);
    const { channel, signal } = openFor(receiver);
    const reply = replyOf({ reply: "<!channel> & Grüße 🙂", to: "C1", thread: "1503435956.000247" });
    expect(await channel.announce(reply, signal)).toEqual({ kind: "delivered", code: 200 });
    const [request] = receiver.requests;
    expect(request).toMatchObject({ method: "POST", path: "/in?of=ops" });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${SECRET}`,
      "content-type": "application/json; charset=utf-8",
      "x-gateway-hops": "1",
    });
    expect(JSON.parse(String(request?.body))).toEqual({
      channel: "C1",
      thread_ts: "1503435956.000247",
      text: "&lt;!channel&gt; &amp; Grüße 🙂",
      unfurl_links: false,
      unfurl_media: false,
    });
  });

  it("posts to the channel's own address, without a thread, if the reply has none", async () => {
    await using receiver = await startReceiver([answerOf(OK)]);
    const { channel, signal } = openFor(receiver);
    await channel.announce(replyOf(), signal);
    const body = JSON.parse(String(receiver.requests[0]?.body));
    expect(body).toMatchObject({ channel: "C0DEFAULT" });
    expect(body).not.toHaveProperty("thread_ts");
  });

  it("MUST not post to its own address into the thread of another one", async () => {
    await using receiver = await startReceiver([answerOf(OK)]);
    const { channel, signal } = openFor(receiver);
    await channel.announce(replyOf({ thread: "1503435956.000247" }), signal);
    const body = JSON.parse(String(receiver.requests[0]?.body));
    expect(body).toMatchObject({ channel: "C0DEFAULT" });
    expect(body).not.toHaveProperty("thread_ts");
  });

  it("makes no request without an address", async () => {
    const bot = createSlackBot(
      { botToken: SECRET, url: undefined, to: undefined },
      { post: () => expect.unreachable() },
    );
    expect(await bot.announce(replyOf(), new AbortController().signal)).toEqual({
      kind: "unsendable",
      reason: "the reply has no Slack channel: set `to` of the mapping or of the channel",
    });
  });

  it.each([
    "channel_not_found",
    "not_in_channel",
    "is_archived",
    "invalid_auth",
    "token_revoked",
    "msg_too_long",
    "some_new_error",
  ])("does not retry after %s", async (error) => {
    expect(await announceTo(answerOf({ ok: false, error }))).toMatchObject(refusedWith(error));
  });

  it.each([
    "ratelimited",
    "rate_limited",
    "message_limit_exceeded",
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
    "org_login_required",
  ])("may retry after %s", async (error) => {
    const outcome = await announceTo(answerOf({ ok: false, error }, { "retry-after": "30" }));
    expect(outcome).toEqual(failed(`Slack answered ${error}`, { code: 200, retryAfterMs: 30_000 }));
  });

  it.each([
    ["channel_not_found", "C1", true],
    ["is_archived", "C1", true],
    ["restricted_action_read_only_channel", "C1", true],
    ["channel_not_found", undefined, false],
    ["invalid_auth", "C1", false],
    ["token_revoked", "C1", false],
    ["some_new_error", "C1", false],
  ])("says of %s with the address %s whether it concerns only this reply: %s", async (error, to, isOfMessage) => {
    await using receiver = await startReceiver([answerOf({ ok: false, error })]);
    const { channel, signal } = openFor(receiver);
    expect(await channel.announce(replyOf({ to }), signal)).toEqual({ ...refusedWith(error), isOfMessage });
  });

  it("returns the pause that a 429 requests", async () => {
    const limited = answerOf({ ok: false, error: "ratelimited" }, { "retry-after": "7" }, 429);
    expect(await announceTo(limited)).toEqual(failed("HTTP 429", { code: 429, retryAfterMs: 7_000 }));
  });

  it.each([
    ["no body", answer(200)],
    ["a page", answer(200, { "content-type": "text/html" }, "<html>Sign in</html>")],
    ["other JSON", answerOf({})],
    ["a list", answerOf([OK])],
    ["null", answer(200, {}, "null")],
    ["`ok` as text", answerOf({ ok: "true" })],
    ["nothing after 204", answer(204)],
    ["that of an incoming webhook", answer(200, { "content-type": "text/html" }, "ok")],
  ])("does not retry, because the reply may be posted, if the answer is %s", async (_what, behaviour) => {
    expect(await announceTo(behaviour)).toMatchObject({
      kind: "refused",
      reason: "the answer is not one of Slack's API: check the channel's `url`",
    });
  });

  it("may retry if the answer does not arrive, is cut, has no end, or is not UTF-8", async () => {
    const late = {
      meanwhile: async ({
        clock,
        timersSet,
      }: Parameters<NonNullable<Parameters<typeof announceTo>[1]>["meanwhile"] & {}>[0]) => {
        await timersSet(1);
        await clock.advance(15_000);
      },
    };
    expect(await announceTo(hang, late)).toEqual(failed("it did not answer in time"));
    expect(await announceTo(stallAfter(200), late)).toEqual(failed("it did not answer in time"));
    expect(await announceTo(leave)).toMatchObject({ kind: "failed" });
    expect(await announceTo(endlessAnswer(200))).toEqual(failed("it sent more than 1 MiB"));
    expect(await announceTo(answer(200, { "content-length": 10 }, "{}"))).toMatchObject({ kind: "failed" });
    const latin = (socket: { end(bytes: Buffer): unknown }) =>
      void socket.end(Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n\xff", "latin1"));
    expect(await announceTo(latin as never)).toEqual(failed("it sent text that is not UTF-8"));
  });

  it("accepts the largest answer of Slack, which repeats the message", async () => {
    const text = "\\u00fc".repeat(40_000);
    const body = `{"ok":true,"message":{"text":"${text}","blocks":[{"text":"${text}"}]}}`;
    expect(await announceTo(answer(200, {}, body))).toEqual({ kind: "delivered", code: 200 });
  });

  it.each([301, 302, 307, 308])("MUST not follow a redirect (%i) with its token", async (code) => {
    await using inside = await startReceiver();
    const outcome = await announceTo(answer(code, { location: `${inside.url}/api` }));
    expect(outcome).toEqual(failed(`HTTP ${code}, and redirects are not followed`, { code }));
    expect(inside.connections()).toBe(0);
  });

  it("MUST not show its token, whatever the answer repeats", async () => {
    const told: string[] = [];
    for (const error of [SECRET, `Bearer ${SECRET}`, { SECRET }, "x".repeat(5_000), "a\nb"])
      told.push(JSON.stringify(await announceTo(answerOf({ ok: false, error }))));
    expect(new Set(told).size).toBe(1);
    expect(told[0]).toContain("Slack answered an unknown error");
  });
});

describe("a webhook whose reply goes to Slack", () => {
  const signingSecret = senders.slack.makeSecret("threads");
  const BOT_TOKEN = "xoxb-1234-5678-secretOfTheBot";
  const mapping = {
    match: { "body.type": "event_callback" },
    message: "{body.event.text}",
    delivery: "announce",
    channel: "team",
    to: "{body.event.channel}",
    thread: "{body.event.thread_ts|body.event.ts}",
    verify: { type: "slack", secret: signingSecret },
  } as const;
  const start = (url: string, to?: string) =>
    startGateway({
      config: {
        channels: {
          team: { type: "slack", botToken: BOT_TOKEN, url: `${url}/api/chat.postMessage`, ...(to && { to }) },
        },
        webhooks: { mappings: { slack: mapping } },
      },
    });
  type Gateway = Awaited<ReturnType<typeof start>>;
  let events = 0;
  const send = async (gateway: Gateway, event: object) => {
    const body = JSON.stringify({ type: "event_callback", event_id: `Ev${++events}`, event });
    const headers = await senders.slack.sign(signingSecret, body);
    return (await gateway.hooks.named("slack", body, { token: null, headers })).json;
  };
  const ended = (gateway: Gateway, turnId: unknown, event: string) =>
    gateway.until(() => gateway.linesOf(event, { turnId: String(turnId) })[0]);

  it("is answered in the thread, or starts one, and again when it is resent", async () => {
    await using slack = await startReceiver([answerOf(OK)]);
    await using gateway = await start(slack.url);
    const inThread = await send(gateway, { text: "hi", channel: "C1", ts: "2.2", thread_ts: "1.1" });
    await ended(gateway, inThread.turnId, "announcement.delivered");
    const fresh = await send(gateway, { text: "ho", channel: "C2", ts: "3.3" });
    await ended(gateway, fresh.turnId, "announcement.delivered");
    await gateway.console.call("turns.announce", { path: { turn_id: String(inThread.turnId) } });
    await slack.received(3);
    expect(slack.requests.map(({ body }) => JSON.parse(String(body)))).toMatchObject([
      { channel: "C1", thread_ts: "1.1", text: "hi" },
      { channel: "C2", thread_ts: "3.3", text: "ho" },
      { channel: "C1", thread_ts: "1.1", text: "hi" },
    ]);
  });

  it("waits as long as Slack's 429 requests", async () => {
    await using slack = await startReceiver([
      answerOf({ ok: false, error: "ratelimited" }, { "retry-after": "1" }, 429),
      answerOf(OK),
    ]);
    await using gateway = await start(slack.url);
    const { turnId } = await send(gateway, { text: "hi", channel: "C1", ts: "2.2" });
    const retried = await ended(gateway, turnId, "announcement.retried");
    expect(retried).toMatchObject({ reason: "HTTP 429" });
    expect(slack.requests).toHaveLength(1);
  });

  it("fails with Slack's reason, or without an address, and shows neither token nor secret", async () => {
    await using slack = await startReceiver([answerOf({ ok: false, error: "not_in_channel" })]);
    await using gateway = await start(slack.url);
    const one = await send(gateway, { text: "hi", channel: "C1", ts: "2.2" });
    expect(await ended(gateway, one.turnId, "announcement.failed")).toMatchObject({
      reason: "Slack answered not_in_channel",
    });
    const other = await send(gateway, { text: "no channel" });
    expect(await ended(gateway, other.turnId, "announcement.failed")).toMatchObject({
      reason: expect.stringContaining("no Slack channel"),
    });
    expect(slack.requests).toHaveLength(1);
    const shown: unknown[] = [gateway.logs];
    for (const call of ["deliveries.list", "mappings.list", "config.get"] as const)
      shown.push((await gateway.console.call(call)).json);
    shown.push((await createRpc(gateway.url).call("system.health")).result);
    const { json } = await gateway.console.call("deliveries.get", { path: { delivery_id: String(one.deliveryId) } });
    expect(JSON.stringify([shown, json])).toContain("not_in_channel");
    expect(JSON.stringify([shown, json])).not.toContain("secretOfTheBot");
    expect(JSON.stringify([shown, json])).not.toContain(signingSecret);
  });

  it("uses the channel's own address if the event has none", async () => {
    await using slack = await startReceiver([answerOf(OK)]);
    await using gateway = await start(slack.url, "C0DEFAULT");
    const { turnId } = await send(gateway, { text: "hi" });
    await ended(gateway, turnId, "announcement.delivered");
    expect(JSON.parse(String(slack.requests[0]?.body))).toMatchObject({ channel: "C0DEFAULT" });
  });
});
