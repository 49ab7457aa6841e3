import { afterAll, describe, expect, test } from "vitest";
import { sign } from "#generated/clients/typescript/src/webhooks.ts";
import { FORM } from "#kit/forms.ts";
import { SECRETS, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { type HookClient, hookTransports } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { type Signed, senders, senderTypes, TWILIO_URL } from "#test/harness/senders.ts";
import type { SignatureType } from "#wire/hooks/signatures.ts";

function secretOf(type: SignatureType): string {
  return senders[type].makeSecret("first");
}
const NEXT = "next";

const mappings = Object.fromEntries(
  senderTypes.map((type) => [
    type,
    {
      match: { "body.kind": "known" },
      message: "from {body.from}",
      verify: {
        type,
        secret: [senders[type].makeSecret(NEXT), secretOf(type)],
        ...(type === "twilio" && { url: TWILIO_URL }),
      },
    },
  ]),
);
const NOW = Date.now();

/** A body in the format of the sender, with the id of this delivery if it is in the body. */
function bodyOf(id: string, more: object = {}) {
  return JSON.stringify({
    id: `evt_${id}`,
    event_id: `Ev_${id}`,
    kind: "known",
    from: id,
    webhookTimestamp: NOW,
    ...more,
  });
}

let ids = 0;
function freshId(): string {
  return `delivery-${++ids}`;
}
async function signedAs(type: SignatureType, body: string, id: string, secret = secretOf(type)): Promise<Signed> {
  const { sign, accepts } = senders[type];
  const headers = await sign(secret, body, { id });
  expect(await accepts(secret, body, headers)).toBe(true);
  return headers;
}

/** The number of sessions, turns and deliveries. */
function countAll({ gateway }: TestGateway) {
  const { sessions, turnsQueued, turnsRunning, eventsQueued } = gateway.store.stats();
  return { sessions, turnsQueued, turnsRunning, eventsQueued };
}

describe.each(Object.entries(hookTransports))("over %s", async (_way, { open, config }) => {
  const trusting = { ...config?.gateway, trustedProxies: ["127.0.0.1"] };
  const gateway = await startGateway({ config: { gateway: trusting, webhooks: { mappings } } });
  const client = await open(gateway);
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
  });

  describe.each(senderTypes)("a webhook of %s", (type) => {
    // Each from another address, because an address with many failures is blocked.
    const from = { "x-forwarded-for": `198.51.100.${senderTypes.indexOf(type)}`, "x-forwarded-proto": "https" };
    const send = (body: string, headers: Record<string, string>): Promise<Reply> =>
      client.named(type, body, { token: null, headers: { ...from, ...headers } });

    // Twilio reads an answer as instructions: the recorder has the result.
    const isSilent = type === "twilio";

    test("starts a turn if its signature is good, without a token", async () => {
      const id = freshId();
      const { sessions } = countAll(gateway);
      const { status, json, text, headers } = await send(bodyOf(id), await signedAs(type, bodyOf(id), id));
      expect(status).toBe(200);
      if (!isSilent) expect(json).toMatchObject({ message: "turn started", mapping: type, agent: "main" });
      else
        expect([text, headers.get("content-type"), headers.get("content-length")]).toEqual([
          "<Response/>",
          "text/xml",
          "11",
        ]);
      expect(countAll(gateway).sessions).toBe(sessions + 1);
    });

    test("is accepted with each secret of the list", async () => {
      const id = freshId();
      const headers = await signedAs(type, bodyOf(id), id, senders[type].makeSecret(NEXT));
      expect((await send(bodyOf(id), headers)).status).toBe(200);
    });

    test("is 401 with a wrong signature, and nothing else happens", async () => {
      const id = freshId();
      const headers = await signedAs(type, bodyOf(id), id);
      const before = countAll(gateway);
      const replies = [
        await send(bodyOf(id), {}),
        await send(`${bodyOf(id)} `, headers),
        await send(bodyOf(id).replace("known", "other"), headers),
        await send("{", headers),
        await send("", headers),
        await send(bodyOf(id), await signedAs(type, bodyOf(id), id, senders[type].makeSecret("stranger"))),
        await send(bodyOf(id), { authorization: `Bearer ${SECRETS.webhookToken}` }),
        await send(bodyOf(id), { "x-gateway-token": SECRETS.webhookToken, "idempotency-key": id }),
      ];
      for (const { error, problem } of replies) {
        expect(error).toBe("unauthenticated");
        expect(problem.detail).toBe("The signature is missing, wrong, or too old.");
      }
      expect(countAll(gateway)).toEqual(before);
      // The key can still be used.
      expect((await send(bodyOf(id), headers)).headers.get("idempotent-replayed")).toBeNull();
    });

    test("that its sender sends again starts nothing: its own id is the key", async () => {
      const id = freshId();
      const first = await send(bodyOf(id), await signedAs(type, bodyOf(id), id));
      const before = countAll(gateway);
      const again = await send(bodyOf(id), await signedAs(type, bodyOf(id), id));
      expect(again.headers.get("idempotent-replayed")).toBe("true");
      expect(again.json).toEqual(first.json);
      expect(countAll(gateway)).toEqual(before);
      const other = freshId();
      const next = await send(bodyOf(other), await signedAs(type, bodyOf(other), other));
      expect(next.headers.get("idempotent-replayed")).toBeNull();
      if (!isSilent) expect(next.json.turnId).not.toBe(first.json.turnId);
    });

    test("that its mapping does not match is 200 and starts nothing", async () => {
      const id = freshId();
      const body = bodyOf(id, { kind: "other" });
      const before = countAll(gateway);
      const { status, json } = await send(body, await signedAs(type, body, id));
      expect([status, json?.message]).toEqual([200, isSilent ? undefined : "no mapping matched"]);
      expect(countAll(gateway)).toEqual(before);
    });

    test("may be a form, whose JSON its mapping reads", async () => {
      const id = freshId();
      const form = `payload=${encodeURIComponent(bodyOf(id))}`;
      const headers = await sign(form, secretOf(type), { scheme: type, id, url: TWILIO_URL });
      const { sessions } = countAll(gateway);
      const reply = await send(form, { ...headers, "content-type": `${FORM}; charset=UTF-8` });
      expect([reply.status, reply.json === undefined]).toEqual([200, type === "slack" || type === "twilio"]);
      expect(countAll(gateway).sessions).toBe(sessions + 1);
      const changed = await send(`${form}+`, { ...headers, "content-type": FORM });
      expect(changed.error).toBe("unauthenticated");
    });

    test("that is authentic and not JSON is 400, and of another media type 415", async () => {
      const [id, body] = [freshId(), "payload=%7B%7D"];
      const headers = await signedAs(type, body, id);
      expect((await send(body, headers)).error).toBe("parse-error");
      for (const other of [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded; charset=latin1",
      ]) {
        const reply = await send(body, { ...headers, "content-type": other });
        expect([other, reply.error]).toEqual([other, "unsupported-media-type"]);
        const types = "application/json or application/x-www-form-urlencoded";
        expect(reply.problem.detail).toBe(`Send Content-Type: ${types}, not compressed.`);
      }
    });
  });
});

describe("a signed webhook", async () => {
  const gateway = await shareGateway({ config: { webhooks: { mappings } } });
  const send = (type: SignatureType, body: string, headers: Signed, client: HookClient = gateway.hooks) =>
    client.named(type, body, { token: null, headers });

  test.each(["standard-webhooks", "github"] as const)("from %s with the id of another body is 422", async (type) => {
    const id = freshId();
    const other = bodyOf(id, { more: 1 });
    await send(type, bodyOf(id), await signedAs(type, bodyOf(id), id));
    expect((await send(type, other, await signedAs(type, other, id))).error).toBe("idempotency-mismatch");
  });

  test.each(["stripe", "slack"] as const)(
    "of %s may differ in fields that its sender updates: the signed id identifies it",
    async (type) => {
      const id = freshId();
      const retry = bodyOf(id, { pending_webhooks: 2 });
      const first = await send(type, bodyOf(id), await signedAs(type, bodyOf(id), id));
      const again = await send(type, retry, await signedAs(type, retry, id));
      expect([again.status, again.json.turnId]).toEqual([200, first.json.turnId]);
    },
  );

  test("without an id starts a turn each time", async () => {
    const body = JSON.stringify({ kind: "known" });
    for (const type of ["github", "stripe", "slack"] as const) {
      const { "x-github-delivery": _, ...headers } = await signedAs(type, body, freshId());
      const [one, two] = [await send(type, body, headers), await send(type, body, headers)];
      expect([one.status, two.status]).toEqual([200, 200]);
      expect(one.json.turnId).not.toBe(two.json.turnId);
    }
  });

  test("may have an id of any length with any characters", async () => {
    for (const id of ["x".repeat(5_000), "é ü", "a b ", "\t"]) {
      const { makeSecret } = senders.github;
      const headers = { ...(await senders.github.sign(makeSecret("first"), bodyOf(id))), "x-github-delivery": id };
      const first = await send("github", bodyOf(id), headers);
      expect(first.status).toBe(200);
      if (id.trim() === "") continue;
      expect((await send("github", bodyOf(id), headers)).json.turnId).toBe(first.json.turnId);
    }
  });

  test("does not share its keys with another mapping or a token", async () => {
    const key = freshId();
    const headers = await signedAs("github", bodyOf(key), key);
    const signed = await send("github", bodyOf(key), headers);
    const standard = await send(
      "standard-webhooks",
      bodyOf(key),
      await signedAs("standard-webhooks", bodyOf(key), key),
    );
    const token = await gateway.hooks.agent({ message: "hi" }, { headers: { "idempotency-key": key } });
    expect(new Set([signed, standard, token].map(({ json }) => json.turnId)).size).toBe(3);
    // A header that a client adds is ignored.
    const again = await send("github", bodyOf(key), { ...headers, "idempotency-key": "another" });
    expect(again.json.turnId).toBe(signed.json.turnId);
  });

  test("has its own rate limit, and an invalid one uses nothing of it", async () => {
    await using limited = await startGateway({
      config: { webhooks: { mappings, rateLimit: { maxRequests: 2, windowMs: 60_000 } } },
    });
    const again = async () => {
      const id = freshId();
      return send("github", bodyOf(id), await signedAs("github", bodyOf(id), id), limited.hooks);
    };
    for (let n = 0; n < 5; n++) expect((await send("github", bodyOf("x"), {}, limited.hooks)).status).toBe(401);
    expect([(await again()).status, (await again()).status]).toEqual([200, 200]);
    const { error, headers } = await again();
    expect(error).toBe("rate-limited");
    expect(headers.get("ratelimit-policy")).toBe('"token";q=2;w=60');
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(50);
    const body = bodyOf(freshId());
    expect((await send("stripe", body, await signedAs("stripe", body, "x"), limited.hooks)).status).toBe(200);
    expect((await limited.hooks.wake({ text: "hi" })).status).toBe(200);
  });

  test("is checked against the size limits before its signature is checked", async () => {
    const body = bodyOf("x".repeat(256 * 1024));
    expect((await send("github", body, await signedAs("github", body, "x"))).error).toBe("too-large");
  });

  test("is refused as soon as a reload removes its secret, and accepted as soon as a reload adds one", async () => {
    await using rotating = await startGateway({ config: { webhooks: { mappings } } });
    const statusWith = async (seed: string) => {
      const id = freshId();
      const headers = await signedAs("github", bodyOf(id), id, senders.github.makeSecret(seed));
      return (await send("github", bodyOf(id), headers, rotating.hooks)).status;
    };
    const withSecrets = (...seeds: string[]) => ({
      webhooks: {
        mappings: {
          github: {
            match: {},
            message: "hi",
            verify: { type: "github" as const, secret: seeds.map(senders.github.makeSecret) },
          },
        },
      },
    });
    expect([await statusWith("first"), await statusWith("third")]).toEqual([200, 401]);
    await rotating.reload(withSecrets(NEXT, "third"));
    expect([await statusWith("first"), await statusWith(NEXT), await statusWith("third")]).toEqual([401, 200, 200]);
  });

  test("shows on its timeline who signed it, and with which secret", async () => {
    const id = freshId();
    const { json } = await send("github", bodyOf(id), await signedAs("github", bodyOf(id), id));
    const got = await gateway.console.call("deliveries.get", { path: { delivery_id: String(json.deliveryId) } });
    expect(got.json).toMatchObject({ caller: "github", mapping: "github", sender_id: id, body: bodyOf(id) });
    const step = (got.json.timeline as { name: string; detail: unknown }[]).find(
      ({ name }) => name === "signature.accepted",
    );
    expect(step?.detail).toEqual({ type: "github", secret: 2 });
    expect(Object.keys(got.json.headers as object)).not.toContain("x-hub-signature-256");
    expect(got.json.headers).toMatchObject({ "x-github-delivery": id });
  });
});
