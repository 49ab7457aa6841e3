import { Ajv2020 } from "ajv/dist/2020.js";
import { Webhook } from "standardwebhooks";
import { expect, it } from "vitest";
import { createPost } from "#channels/post.ts";
import { createWebhookChannel } from "#channels/webhook.ts";
import { systemClock } from "#kit/clock.ts";
import document from "../../generated/openapi.json" with { type: "json" };
import { replyOf, SECRET } from "./channel-under-test.ts";
import { startReceiver } from "./receiver.ts";
import { channelSuite } from "./suite.ts";

channelSuite({ name: "webhook", open: (url, parts) => createWebhookChannel({ url, secret: SECRET }, parts) });

async function sent(secret: string, reply = replyOf()) {
  await using receiver = await startReceiver();
  const post = createPost({ clock: systemClock });
  const channel = createWebhookChannel({ url: receiver.url, secret }, { post, clock: systemClock });
  await channel.announce(reply, new AbortController().signal);
  const [request] = receiver.requests;
  return { headers: request?.headers ?? {}, body: String(request?.body) };
}

it("MUST sign as Standard Webhooks, with the turn's id", async () => {
  const secret = `whsec_${Buffer.from("twenty-four random bytes").toString("base64")}`;
  const { headers, body } = await sent(secret, replyOf({ reply: "Grüße 🙂\u2028" }));
  expect(headers["webhook-id"]).toBe(replyOf().turnId);
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ data: { reply: "Grüße 🙂\u2028" } });
  const other = new Webhook(`whsec_${Buffer.from("another key of the same kind").toString("base64")}`);
  expect(() => other.verify(body, headers)).toThrow("No matching signature");
  expect(() => new Webhook(secret).verify(body.replace("Grüße", "Gruss"), headers)).toThrow("No matching signature");
});

it("signs with the bytes of a secret without a prefix", async () => {
  const { headers, body } = await sent(SECRET);
  expect(() => new Webhook(SECRET, { format: "raw" }).verify(body, headers)).not.toThrow();
});

it("sends what the contract specifies, with headers, and the contract's example is valid", async () => {
  const ajv = new Ajv2020({ strict: false, coerceTypes: true }).addSchema(document, "openapi");
  const validate = ajv.compile({ $ref: "openapi#/components/schemas/Announcement" });
  const { parameters, requestBody } = document.webhooks["turn.completed"].post;
  expect(validate(requestBody.content["application/json"].examples.completed.value)).toBe(true);
  const { headers } = await sent(SECRET);
  for (const [n, { name }] of parameters.entries()) {
    const where = `openapi#/webhooks/turn.completed/post/parameters/${n}/schema`;
    expect(
      ajv.validate({ type: "object", properties: { value: { $ref: where } } }, { value: headers[name] }),
      name,
    ).toBe(true);
    expect(headers[name]).toBeDefined();
  }

  const bare = { deliveryId: undefined, model: undefined, reply: "" };
  for (const reply of [replyOf({ model: "fast" }), replyOf(bare)]) {
    const { body } = await sent(SECRET, reply);
    expect(validate(JSON.parse(body)), JSON.stringify(validate.errors)).toBe(true);
  }
  expect(JSON.parse((await sent(SECRET, replyOf({ model: "fast" }))).body)).toEqual({
    type: "turn.completed",
    timestamp: "2026-11-21T08:00:01.333Z",
    data: {
      turnId: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
      sessionId: "webhook:alerts",
      agent: "main",
      channel: "ops",
      reply: "Three alerts.",
      model: "fast",
      usage: { input: 12, output: 34, total: 46 },
      deliveryId: "dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
      createdAt: "2026-11-21T08:00:00.000Z",
      endedAt: "2026-11-21T08:00:01.333Z",
    },
  });
});
