import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Signed, senders, senderTypes, TWILIO_URL } from "#test/harness/senders.ts";
import { claimFault, type SignatureType, schemes, signedWith, timeFault } from "#wire/hooks/signatures.ts";

/** Returns the index of the matching secret, or the reason for a refusal. */
function judge(
  type: SignatureType,
  secrets: readonly string[],
  body: string | Buffer,
  headers: Signed,
  at = Date.now(),
) {
  const scheme = schemes[type];
  const claim = scheme.claimOf(headers);
  const fault = claimFault(claim, at);
  if (fault !== undefined || claim === undefined) return fault?.reason;
  const keys = secrets.flatMap((secret, index) => scheme.keysOf(secret).map((key) => ({ key, index })));
  const signing = { scheme, keys: keys.map(({ key }) => key), url: TWILIO_URL };
  const found = signedWith(signing, claim, Buffer.from(body), headers);
  return found === undefined ? "wrong" : keys[found]?.index;
}

const BODIES = [
  "{}",
  '{"id":"evt_1"}',
  '{"text":"Grüße, 世界 👋 \\u0000"}',
  `{"long":"${"x".repeat(256 * 1024)}"}`,
  "no JSON at all\r\n",
];
const BODY = BODIES[1] as string;
const MINUTE = 60_000;

describe.each(senderTypes)("a signature of %s", (type) => {
  const { makeSecret, sign, accepts, signed } = senders[type];
  const [secret, other] = [makeSecret("first"), makeSecret("second")];

  test("is valid if the reference implementation made or accepts it, over any body", async () => {
    for (const body of BODIES) {
      const headers = await sign(secret, body);
      expect(await accepts(secret, body, headers)).toBe(true);
      expect(judge(type, [secret], body, headers)).toBe(0);
    }
  });

  test("is invalid with another secret, with another body, and without the headers", async () => {
    const headers = await sign(secret, BODY);
    expect(judge(type, [other], BODY, headers)).toBe("wrong");
    expect(judge(type, [secret], `${BODY} `, headers)).toBe("wrong");
    expect(judge(type, [secret], "", headers)).toBe("wrong");
    for (const name of signed) {
      const { [name]: _, ...rest } = headers;
      expect(judge(type, [secret], BODY, rest), `without ${name}`).toBe("missing");
      expect(judge(type, [secret], BODY, { ...rest, [name]: "" }), `with an empty ${name}`).toBe("missing");
    }
  });

  test("is over bytes: a body that is not UTF-8 is accepted unchanged", () => {
    const raw = Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28]);
    const at = Math.floor(Date.now() / 1000);
    const key = schemes[type].keysOf(secret)[0] as Buffer;
    const mac = (prefix: string) => createHmac("sha256", key).update(prefix).update(raw);
    const headers: Record<SignatureType, Signed> = {
      "standard-webhooks": {
        "webhook-id": "msg",
        "webhook-timestamp": `${at}`,
        "webhook-signature": `v1,${mac(`msg.${at}.`).digest("base64")}`,
      },
      github: { "x-hub-signature-256": `sha256=${mac("").digest("hex")}` },
      stripe: { "stripe-signature": `t=${at},v1=${mac(`${at}.`).digest("hex")}` },
      slack: { "x-slack-request-timestamp": `${at}`, "x-slack-signature": `v0=${mac(`v0:${at}:`).digest("hex")}` },
      linear: { "linear-signature": mac("").digest("hex") },
      twilio: {
        "x-twilio-signature": createHmac("sha1", key)
          .update(`${TWILIO_URL}&bodySHA256=${createHash("sha256").update(raw).digest("hex")}`)
          .digest("base64"),
      },
    };
    expect(judge(type, [secret], raw, headers[type])).toBe(0);
    expect(judge(type, [secret], Buffer.from(raw.toString()), headers[type])).toBe("wrong");
  });

  test("is invalid if any signed byte is changed or missing", async () => {
    const headers = await sign(secret, BODY);
    for (const name of signed) {
      const value = headers[name] as string;
      for (let at = 0; at < value.length; at++) {
        for (let code = 0x20; code < 0x7f; code++) {
          const letter = String.fromCharCode(code);
          if (letter === value[at]) continue;
          const changed = { ...headers, [name]: value.slice(0, at) + letter + value.slice(at + 1) };
          expect(typeof judge(type, [secret], BODY, changed), `${name} with ${letter} at ${at}`).toBe("string");
        }
        const cut = { ...headers, [name]: value.slice(0, at) + value.slice(at + 1) };
        expect(typeof judge(type, [secret], BODY, cut), `${name} without ${at}`).toBe("string");
      }
    }
    const body = Buffer.from(BODY);
    for (let bit = 0; bit < body.length * 8; bit++) {
      const changed = Buffer.from(body);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(judge(type, [secret], changed, headers)).toBe("wrong");
    }
  });

  test("is accepted only if the reference accepts it, however the headers are changed", async () => {
    const headers = await sign(secret, BODY);
    const tricks = [
      (value: string) => value.toUpperCase(),
      (value: string) => `${value}${value}`,
      (value: string) => `${value}=`,
      (value: string) => value.replace("=", "==").replace(",", ",,"),
      (value: string) => value.replace(/^\D*/, ""),
      (value: string) => `+${value}`,
      (value: string) => `0x${value}`,
      (value: string) => `${value}.5`,
      (value: string) => `${value}e0`,
      (value: string) => `-${value}`,
      (value: string) => `${value}, ${value}`,
      (value: string) => value.replaceAll("1", "2"),
      () => "null",
      () => "NaN",
      () => "v1,",
      () => "v0=",
      () => "sha256=",
      () => "t=,v1=",
      () => ",",
      () => "x".repeat(15_000),
      () => "v1, ".repeat(3_000),
    ];
    for (const name of signed)
      for (const trick of tricks) {
        const changed = { ...headers, [name]: trick(headers[name] as string) };
        const ours = judge(type, [secret], BODY, changed);
        if (ours === 0) expect(await accepts(secret, BODY, changed), JSON.stringify(changed)).toBe(true);
      }
  });
});

const TIMED = ["standard-webhooks", "stripe", "slack"] as const;

describe.each(TIMED)("the time of %s", (type) => {
  const { makeSecret, sign } = senders[type];
  const secret = makeSecret("first");

  test("may have a time up to five minutes from ours", async () => {
    const now = 1_700_000_000_000;
    const judged = async (at: number) => judge(type, [secret], BODY, await sign(secret, BODY, { at }), now);
    expect(await judged(now)).toBe(0);
    expect(await judged(now - 5 * MINUTE)).toBe(0);
    expect(await judged(now + 5 * MINUTE)).toBe(0);
    expect(await judged(now - 5 * MINUTE - 1_000)).toBe("too-old");
    expect(await judged(now + 5 * MINUTE + 1_000)).toBe("too-new");
    expect(await judged(1_000)).toBe("too-old");
  });

  test("is checked before the signature, so that an error about the time reveals nothing about the secret", async () => {
    const headers = await sign(makeSecret("of somebody else"), BODY, { at: Date.now() - 6 * MINUTE });
    expect(judge(type, [secret], BODY, headers)).toBe("too-old");
  });
});

test("the time of Linear is in the body: at most five minutes from ours, and required", () => {
  const now = 1_700_000_000_000;
  const reasonAt = (webhookTimestamp: unknown) => timeFault(schemes.linear, { webhookTimestamp }, now)?.reason;
  expect([reasonAt(now), reasonAt(now - 5 * MINUTE), reasonAt(now + 5 * MINUTE)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect([reasonAt(now - 5 * MINUTE - 1), reasonAt(now + 5 * MINUTE + 1)]).toEqual(["too-old", "too-new"]);
  // In seconds, as text, or missing.
  expect([reasonAt(now / 1_000), reasonAt(String(now)), reasonAt(undefined)]).toEqual([
    "too-old",
    "missing",
    "missing",
  ]);
  for (const body of [[], [now]]) expect(timeFault(schemes.linear, body, now)?.reason).toBe("missing");
});

describe("several signatures in one header", () => {
  const now = Math.floor(Date.now() / 1000);

  test("any valid v1 signature of Standard Webhooks is accepted", async () => {
    const { makeSecret, sign, accepts } = senders["standard-webhooks"];
    const secret = makeSecret("first");
    const headers = await sign(secret, BODY);
    const good = headers["webhook-signature"] as string;
    const wrong = (await sign(makeSecret("second"), BODY))["webhook-signature"] as string;
    const judged = (text: string) =>
      judge("standard-webhooks", [secret], BODY, { ...headers, "webhook-signature": text });
    for (const text of [`${wrong} ${good}`, `${good} ${wrong}`, `v1a,${good.slice(3)} ${good}`]) {
      expect(await accepts(secret, BODY, { ...headers, "webhook-signature": text })).toBe(true);
      expect(judged(text), text).toBe(0);
    }
    expect(judged(wrong)).toBe("wrong");
    for (const version of ["v0", "v1a", "v2", "V1", ""])
      expect(judged(good.replace("v1", version)), version).toBe("missing");
  });

  test("any valid v1 signature of Stripe is accepted, with one time", async () => {
    const { makeSecret, sign, accepts } = senders.stripe;
    const secret = makeSecret("first");
    const good = (await sign(secret, BODY, { at: now * 1_000 }))["stripe-signature"]?.split("v1=")[1] as string;
    const wrong = "0".repeat(64);
    const judged = (text: string) => judge("stripe", [secret], BODY, { "stripe-signature": text });
    for (const text of [`t=${now},v1=${wrong},v1=${good}`, `t=${now},v1=${good},v0=${wrong}`, `v1=${good},t=${now}`]) {
      expect(await accepts(secret, BODY, { "stripe-signature": text })).toBe(true);
      expect(judged(text), text).toBe(0);
    }
    expect(judged(`t=${now},v0=${good}`)).toBe("missing");
    expect(judged(`t=${now},t=${now - 1},v1=${good}`)).toBe("missing");
  });
});

describe("a secret of Standard Webhooks", () => {
  const at = Math.floor(Date.now() / 1000);
  const signedBy = (key: Buffer): Signed => ({
    "webhook-id": "msg_1",
    "webhook-timestamp": String(at),
    "webhook-signature": `v1,${createHmac("sha256", key).update(`msg_1.${at}.${BODY}`).digest("base64")}`,
  });
  const text = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

  test.each([
    ["is base64 behind whsec_", `whsec_${text}`, Buffer.from(text, "base64")],
    ["is base64 without it, as the reference reads it", text, Buffer.from(text, "base64")],
    ["is the text itself, as others read it", text, Buffer.from(text)],
    [
      "is the text itself if it is not base64",
      "a plain secret of the sender",
      Buffer.from("a plain secret of the sender"),
    ],
  ])("%s", (_, secret, key) => {
    expect(judge("standard-webhooks", [secret], BODY, signedBy(key))).toBe(0);
  });

  test("is not the text behind whsec_ itself", () => {
    expect(judge("standard-webhooks", [`whsec_${text}`], BODY, signedBy(Buffer.from(`whsec_${text}`)))).toBe("wrong");
    expect(judge("standard-webhooks", [`whsec_${text}`], BODY, signedBy(Buffer.from(text)))).toBe("wrong");
  });
});

test("an old signature of GitHub, over SHA-1, is not valid", () => {
  const sha1 = createHmac("sha1", "a-secret").update(BODY).digest("hex");
  expect(judge("github", ["a-secret"], BODY, { "x-hub-signature": `sha1=${sha1}` })).toBe("missing");
  expect(judge("github", ["a-secret"], BODY, { "x-hub-signature-256": `sha1=${sha1}` })).toBe("missing");
});
