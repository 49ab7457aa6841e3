import { createHash, createHmac } from "node:crypto";
import { HTTPModuleFunctions } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import { FORM } from "#kit/forms.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import type { HookClient } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { senders } from "#test/harness/senders.ts";

const SIGNING_SECRET = senders.slack.makeSecret("forms");
const AUTH_TOKEN = "12345AuthTokenOfTwilio";
const URL_OF_TWILIO = "https://example.com/hooks/sms?foo=1&bar=2";

const mappings = {
  command: {
    match: { "body.command": "/deploy" },
    message: "{body.user_name}: {body.text}",
    verify: { type: "slack", secret: SIGNING_SECRET },
  },
  button: {
    match: { "body.type": "block_actions" },
    message: "{body.user.name} chose {body.actions.0.value}",
    verify: { type: "slack", secret: SIGNING_SECRET },
  },
  sms: {
    match: {},
    message: "{body.From}: {body.Body}",
    verify: { type: "twilio", secret: AUTH_TOKEN, url: URL_OF_TWILIO },
  },
  github: { match: {}, message: "{body.zen}", verify: { type: "github", secret: senders.github.makeSecret("forms") } },
  open: { match: { "body.kind": "open" }, message: "hi" },
} as const;

/** Slack's request for a command. */
const COMMAND = new URLSearchParams({
  token: "gIkuvaNzQIHg97ATvDxqgjtO",
  team_id: "T0001",
  team_domain: "example",
  channel_id: "C2147483705",
  channel_name: "test",
  user_id: "U2147483697",
  user_name: "Steve",
  command: "/deploy",
  text: "billing to staging & back, 100%+",
  api_app_id: "A123456",
  is_enterprise_install: "false",
  response_url: "https://hooks.slack.com/commands/1234/5678",
  trigger_id: "13345224609.738474920.8088930838d88f008e0",
}).toString();
const BUTTON = {
  type: "block_actions",
  user: { id: "U1", name: "ada" },
  trigger_id: "12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3",
  token: "9s8d9as89d8as9d8as989",
  actions: [{ action_id: "approve", value: "yes & now" }],
};
const BUTTON_FORM = `payload=${encodeURIComponent(JSON.stringify(BUTTON)).replaceAll("%20", "+")}`;

type Step = { name: string; detail: Record<string, unknown> | null };
type Recorded = {
  delivery_id: string;
  body: string;
  headers: Record<string, string>;
  sender_id: string;
  outcome: string;
  preview: string | null;
  timeline: Step[];
};

describe("a form", async () => {
  const gateway = await shareGateway({
    config: { gateway: { trustedProxies: ["127.0.0.1"] }, webhooks: { mappings } },
  });
  let senderCount = 0;
  /** Sends from an own address, as many failures block an address. */
  const send = (
    name: string,
    body: string | Buffer,
    headers: Record<string, string>,
    client: HookClient = gateway.hooks,
  ) =>
    client.named(name, body, {
      token: null,
      headers: {
        "content-type": FORM,
        "x-forwarded-for": `198.51.100.${++senderCount % 250}`,
        "x-forwarded-proto": "https",
        ...headers,
      },
    });
  const signed = (body: string, at = Date.now()) => senders.slack.sign(SIGNING_SECRET, body, { at });
  const deliveryOf = async ({ headers }: Reply): Promise<Recorded> => {
    const { json } = await gateway.console.call("deliveries.list", {
      query: { id: String(headers.get("x-request-id")) },
    });
    const [{ delivery_id }] = json.deliveries as [{ delivery_id: string }];
    return (await gateway.console.call("deliveries.get", { path: { delivery_id } })).json as unknown as Recorded;
  };
  const replay = async (delivery_id: string, body?: object): Promise<Record<string, unknown>> =>
    (await gateway.console.call("deliveries.replay", { path: { delivery_id }, ...(body && { body: { body } }) })).json;

  test.each([
    ["command", COMMAND, "Steve: billing to staging & back, 100%+", "13345224609.738474920.8088930838d88f008e0"],
    ["button", BUTTON_FORM, "ada chose yes & now", BUTTON.trigger_id],
  ])("of Slack, a %s, starts a turn and is answered without a body", async (name, form, message, senderId) => {
    const headers = await signed(form);
    const reply = await send(name, form, headers);
    expect([reply.status, reply.text, reply.headers.get("content-type")]).toEqual([200, "", null]);
    const delivery = await deliveryOf(reply);
    expect(delivery).toMatchObject({ preview: message, turn_id: expect.any(String), sender_id: senderId });
    // Its own package accepts it and reads the same.
    const request = { rawBody: Buffer.from(form), headers: { ...headers, "content-type": FORM } } as never;
    const verified = await HTTPModuleFunctions.parseAndVerifyHTTPRequest(
      { signingSecret: SIGNING_SECRET } as never,
      request,
    );
    expect(HTTPModuleFunctions.parseHTTPRequestBody(verified as never)).toMatchObject({ trigger_id: senderId });
    // A repeat starts nothing.
    const again = await send(name, form, await signed(form));
    expect([again.status, again.text, again.headers.get("idempotent-replayed")]).toEqual([200, "", "true"]);
  });

  test("that its mapping does not match is 200 without a body", async () => {
    const form = COMMAND.replace("deploy", "other");
    const reply = await send("command", form, await signed(form));
    expect([reply.status, reply.text]).toEqual([200, ""]);
    expect(await deliveryOf(reply)).toMatchObject({ outcome: "unmatched" });
  });

  test("is 401 with any byte changed, an old time, or another secret", async () => {
    const form = "command=%2Fdeploy&text=a+b";
    const headers = await signed(form);
    for (let at = 0; at < form.length; at += 2) {
      const changed = Buffer.from(form);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect((await send("command", changed, headers)).error).toBe("unauthenticated");
    }
    // The same fields in other bytes.
    for (const same of ["command=%2fdeploy&text=a+b", "command=%2Fdeploy&text=a%20b", `${form}&`])
      expect((await send("command", same, headers)).error).toBe("unauthenticated");
    expect((await send("command", form, await signed(form, Date.now() - 6 * 60_000))).error).toBe("unauthenticated");
    expect((await send("command", form, await senders.slack.sign("another-secret", form))).error).toBe(
      "unauthenticated",
    );
    expect((await send("command", form, {})).error).toBe("unauthenticated");
  });

  test("of GitHub has its JSON in `payload`, and is answered with JSON", async () => {
    const form = `payload=${encodeURIComponent('{"zen":"Keep it logically awesome."}')}`;
    const reply = await send("github", form, await senders.github.sign(senders.github.makeSecret("forms"), form));
    expect(reply.json).toMatchObject({ message: "turn started", mapping: "github" });
  });

  test("that is authentic and cannot be read is 400, with the reason", async () => {
    const cases = [
      ["a=%zz", "parse-error"],
      ["payload=no", "parse-error"],
      ["payload=7", "invalid-request"],
      ["", "parse-error"],
      [Array.from({ length: 10_001 }, () => "a=").join("&"), "invalid-request"],
      ['{"command":"x&command=/deploy"}', "parse-error"],
    ] as const;
    for (const [form, error] of cases) expect((await send("command", form, await signed(form))).error).toBe(error);
  });

  test("is 415 without `verify`, before its body is read", async () => {
    for (const path of ["open", "wake", "agent", ""]) {
      const reply = await gateway.hooks.send(path && `/${path}`, "kind=open", { headers: { "content-type": FORM } });
      expect(reply.error).toBe("unsupported-media-type");
      expect(reply.problem.detail).toBe(
        "Send Content-Type: application/json. Forms are accepted only at the path of a mapping with `verify`, because they must be signed.",
      );
    }
  });

  test("sent as JSON, and signed JSON sent as a form, are refused", async () => {
    const json = JSON.stringify({ event_id: "Ev1", text: "x&command=/deploy&y" });
    expect((await send("command", json, await signed(json))).error).toBe("parse-error");
    const asJson = { "content-type": "application/json" };
    expect((await send("command", COMMAND, { ...(await signed(COMMAND)), ...asJson })).error).toBe("parse-error");
  });

  test("is recorded as it was sent, with its secrets hidden, and replayed with them", async () => {
    const form = COMMAND.replace("trigger_id=1", "trigger_id=2");
    const delivery = await deliveryOf(await send("command", form, await signed(form)));
    expect(delivery.body).toBe(form.replace("gIkuvaNzQIHg97ATvDxqgjtO", "[hidden]"));
    expect(delivery.headers).toMatchObject({ "content-type": FORM });
    expect(JSON.stringify(delivery.headers)).not.toContain("v0=");
    expect(await replay(delivery.delivery_id)).toMatchObject({ outcome: "queued", mapping: "command" });
    const again = await replay(delivery.delivery_id, {
      command: "/deploy",
      user_name: "ada",
      text: "again",
      token: "[hidden]",
    });
    expect(again).toMatchObject({ outcome: "queued", mapping: "command" });
    const path = { delivery_id: String(again.delivery_id) };
    const { json } = await gateway.console.call("deliveries.get", { path });
    expect(json).toMatchObject({ preview: "ada: again", headers: { "content-type": "application/json" } });
    const stored = await gateway.gateway.store.getDelivery(path.delivery_id);
    expect(JSON.parse(String(stored?.body))).toMatchObject({ token: "gIkuvaNzQIHg97ATvDxqgjtO" });
    // A replay of the edited replay, which is JSON.
    expect(await replay(path.delivery_id)).toMatchObject({ outcome: "queued", mapping: "command" });
  });

  test("with JSON in `payload` is recorded with the secrets in it hidden", async () => {
    const form = BUTTON_FORM.replace("12321423423", "22321423423");
    const delivery = await deliveryOf(await send("button", form, await signed(form)));
    expect(delivery.body).not.toContain(BUTTON.token);
    const [, payload] = delivery.body.split("=");
    expect(JSON.parse(decodeURIComponent(String(payload)).replaceAll("+", " "))).toMatchObject({
      token: "[hidden]",
      type: "block_actions",
    });
    expect(await replay(delivery.delivery_id)).toMatchObject({ outcome: "queued", mapping: "button" });
  });

  test("that was recorded is tried by a back-test as mappings read it", async () => {
    const mapping = {
      name: "draft",
      match: { "body.type": "block_actions" },
      message: "{body.actions.0.value} {body.token}",
    };
    const { json } = await gateway.console.call("mappings.backtest", { body: { mapping } });
    expect(json.deliveries).toContainEqual(expect.objectContaining({ matched: true, message: "yes & now [hidden]" }));
    const command = { ...mapping, match: { "body.command": "/deploy" }, message: "{body.text}" };
    const { json: other } = await gateway.console.call("mappings.backtest", { body: { mapping: command } });
    expect(other.deliveries).toContainEqual(
      expect.objectContaining({ matched: true, message: "billing to staging & back, 100%+" }),
    );
  });

  describe("of Twilio", () => {
    const sms = { MessageSid: "SM1", From: "+15551230000", Body: "Hi there, ünïcode & co", NumMedia: "0", Empty: "" };
    const formOf = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
    /** The signature by the rule of Twilio's documentation. */
    const sign = (form: string, url = URL_OF_TWILIO, token = AUTH_TOKEN) => {
      const params = new URLSearchParams(form);
      const names = [...new Set(params.keys())].sort();
      const text = names
        .flatMap((name) => [...new Set(params.getAll(name))].sort().map((value) => name + value))
        .join("");
      return {
        "x-twilio-signature": createHmac("sha1", token)
          .update(url + text)
          .digest("base64"),
      };
    };
    const sendSms = (form: string, headers: Record<string, string>) =>
      send("sms", form, { "content-type": `${FORM}; charset=UTF-8`, ...headers });

    test("has the signature of the documentation's example", () => {
      const form = "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";
      expect(sign(form, "https://mycompany.com/myapp.php?foo=1&bar=2", "12345")).toEqual({
        "x-twilio-signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
      });
    });

    test("starts a turn over the configured address, with and without its port, and is answered without instructions", async () => {
      const urls = [URL_OF_TWILIO, URL_OF_TWILIO.replace("com/", "com:443/")];
      for (const [n, url] of urls.entries()) {
        const form = formOf({ ...sms, MessageSid: `SM-port-${n}` });
        const reply = await sendSms(form, sign(form, url));
        expect([reply.status, reply.text]).toEqual([200, "<Response/>"]);
        // Twilio reports an answer without a media type as an error.
        expect(reply.headers.get("content-type")).toBe("text/xml");
        expect(await deliveryOf(reply)).toMatchObject({
          turn_id: expect.any(String),
          preview: "+15551230000: Hi there, ünïcode & co",
        });
      }
    });

    test("is 401 for another address, path, query or port, a changed field, or another secret", async () => {
      const form = formOf(sms);
      const bad = [
        sign(form, URL_OF_TWILIO.replace("https", "http")),
        sign(form, URL_OF_TWILIO.replace("foo=1", "foo=2")),
        sign(form, URL_OF_TWILIO.replace(/\?.*/, "")),
        sign(form, URL_OF_TWILIO.replace("com/", "com:8443/")),
        sign(form, URL_OF_TWILIO, "another token"),
        sign(`${form}&More=1`),
        sign(form.replace("Hi", "Ho")),
        { "x-twilio-signature": `${sign(form)["x-twilio-signature"]}=` },
        { "x-twilio-signature": "" },
      ];
      for (const headers of bad) expect((await sendSms(form, headers)).error).toBe("unauthenticated");
      // A form that cannot be read, or has too many fields, cannot have been signed.
      for (const odd of ["a=%zz", "", '{"a":"b"}', "a=&".repeat(10_001)])
        expect((await sendSms(odd, sign(""))).error).toBe("unauthenticated");
    });

    test("may repeat names and values, and its order does not matter", async () => {
      const form = "MessageSid=SM-repeat&Body=b&Body=a&Body=b&From=x";
      expect((await sendSms(form, sign(form))).status).toBe(200);
      expect(
        (await sendSms("From=x&Body=b&Body=a&MessageSid=SM-order", sign("MessageSid=SM-order&Body=a&Body=b&From=x")))
          .status,
      ).toBe(200);
    });

    const isRepeat = async (fields: Record<string, string>, token?: string) => {
      const body = formOf(fields);
      const reply = await sendSms(body, { ...sign(body), ...(token && { "i-twilio-idempotency-token": token }) });
      expect(reply.status).toBe(200);
      return reply.headers.get("idempotent-replayed") === "true";
    };

    test.each([
      ["a message", { MessageSid: "SM-status", MessageStatus: "sent" }, { MessageStatus: "delivered" }],
      ["an older message", { SmsSid: "SM-sms", SmsStatus: "sent" }, { SmsStatus: "delivered" }],
      ["a recording", { CallSid: "CA-1", RecordingSid: "RE1", RecordingStatus: "completed" }, { RecordingSid: "RE2" }],
    ])("of %s is recognised by its signed id and status, whatever Twilio's token is", async (_what, fields, other) => {
      const changed: Record<string, string> = { ...fields, ...other };
      expect([await isRepeat(fields), await isRepeat(changed), await isRepeat(fields)]).toEqual([false, false, true]);
      // The token is not signed: a captured request could have another one.
      expect([await isRepeat(fields, "t-1"), await isRepeat(fields, "t-2")]).toEqual([true, true]);
    });

    test("of a call is recognised by Twilio's token only: the same caller may enter the same digits twice", async () => {
      const call = { CallSid: "CA-2", CallStatus: "in-progress", Digits: "1" };
      expect([await isRepeat(call), await isRepeat({ ...call, Digits: "2" }), await isRepeat(call)]).toEqual(
        Array(3).fill(false),
      );
      expect([await isRepeat(call, "t-3"), await isRepeat(call, "t-3")]).toEqual([false, true]);
      // A recording without a status belongs to an answer of the call.
      const recorded = { ...call, RecordingSid: "RE3" };
      expect([await isRepeat(recorded), await isRepeat(recorded)]).toEqual([false, false]);
    });

    test("MUST be refused before it is decoded if it is larger or has more fields than Twilio sends", async () => {
      const numbered = (count: number) =>
        formOf(Object.fromEntries(Array.from({ length: count }, (_, n) => [`Field${n}`, "x"])));
      const padded = (bytes: number) => `Body=${"x".repeat(bytes - "Body=".length)}`;
      for (const form of [numbered(256), padded(65_536)]) expect((await sendSms(form, sign(form))).status).toBe(200);
      for (const form of [numbered(257), padded(65_537)])
        expect((await sendSms(form, sign(form))).error).toBe("unauthenticated");
    });

    test("with JSON is verified by its hash in the address", async () => {
      const { sign: signLike } = await import("#generated/clients/typescript/src/webhooks.ts");
      const body = JSON.stringify({ From: "json", Body: "hi" });
      const headers = await signLike(body, AUTH_TOKEN, { scheme: "twilio", url: URL_OF_TWILIO });
      const json = { ...headers, "content-type": "application/json" };
      const reply = await send("sms", body, json);
      expect([reply.status, reply.text]).toEqual([200, "<Response/>"]);
      expect((await send("sms", `${body} `, json)).error).toBe("unauthenticated");
      // The signature of JSON is that of a form with the hash as its field, and that of a longer address.
      const hash = createHash("sha256").update(body).digest("hex");
      for (const name of [`&bodySHA256=${hash}`, "-vipFrom"]) {
        const form = formOf({ [name]: "" });
        expect((await sendSms(form, sign(form))).error).toBe("unauthenticated");
        expect((await sendSms(form, headers)).error).toBe("unauthenticated");
      }
      // JSON with the signature of a form without fields is not accepted.
      expect((await send("sms", body, { ...sign(""), "content-type": "application/json" })).error).toBe(
        "unauthenticated",
      );
    });
  });
});
