import { describe, expect, test } from "vitest";
import { webhooks } from "#generated/clients/typescript/src/index.ts";
import { pythons, runPython } from "./python.ts";

const body = JSON.stringify({ type: "turn.completed", data: { reply: "Größe" } });
const secret = `whsec_${Buffer.from("a secret of the tests").toString("base64")}`;

describe.concurrent.each(pythons)("the webhooks of the client for Python %s", (_, python) => {
  test("sign like the TypeScript client", async () => {
    const schemes = ["standard-webhooks", "github", "stripe", "slack", "linear", "twilio"] as const;
    const url = "https://example.com/hooks/sms?a=1";
    const options = { id: "msg_1", timestamp: 1_700_000_000, url };
    const form = "Body=Gr%C3%B6%C3%9Fe+%26&From=%2B1&Body=a&Body=a&empty=";
    const signed = await runPython(
      python,
      `
for scheme in ${JSON.stringify(schemes)}:
    show(webhooks.sign(${JSON.stringify(body)}, "${secret}", scheme=scheme, id="msg_1", timestamp=1700000000, url="${url}"))
show(webhooks.sign("${form}", "${secret}", scheme="twilio", id="msg_1", url="${url}"))
`,
    );
    expect(signed).toEqual(
      await Promise.all([
        ...schemes.map((scheme) => webhooks.sign(body, secret, { scheme, ...options })),
        webhooks.sign(form, secret, { scheme: "twilio", ...options }),
      ]),
    );
  });

  test("unwrap what matches one of the secrets, and give the reason for a refusal", async () => {
    const shown = await runPython(
      python,
      `
import time
body, secret = ${JSON.stringify(body)}, "${secret}"
headers = webhooks.sign(body, secret)
shouted = {name.upper(): value for name, value in headers.items()}
shouted["WEBHOOK-SIGNATURE"] = "v1,AAAA " + shouted["WEBHOOK-SIGNATURE"]
show(webhooks.unwrap(body, headers, secret)["data"])
show(webhooks.unwrap(body.encode(), shouted, ["another", secret])["data"])
show(webhooks.unwrap_event(body, headers, secret)["data"])
show(failing(lambda: webhooks.unwrap(body + " ", headers, secret))["detail"])
show(failing(lambda: webhooks.unwrap_event(body + " ", headers, secret))["detail"])
show(failing(lambda: webhooks.unwrap(body, headers, "another"))["detail"])
show(failing(lambda: webhooks.unwrap(body, webhooks.sign(body, secret, timestamp=int(time.time()) - 301), secret))["detail"])
show(failing(lambda: webhooks.unwrap(body, {**headers, "webhook-timestamp": "soon"}, secret))["detail"])
show(failing(lambda: webhooks.unwrap(body, {**headers, "webhook-signature": "ü"}, secret))["detail"])
show(failing(lambda: webhooks.unwrap(body, {}, secret))["class"])
`,
    );
    expect(shown).toEqual([
      { reply: "Größe" },
      { reply: "Größe" },
      { reply: "Größe" },
      expect.stringContaining("does not match any of the secrets"),
      expect.stringContaining("does not match any of the secrets"),
      expect.stringContaining("does not match any of the secrets"),
      expect.stringContaining("more than 300 seconds from now"),
      expect.stringContaining("more than 300 seconds from now"),
      expect.stringContaining("does not match any of the secrets"),
      "BadSignatureError",
    ]);
  });

  test("refuse a secret without a key, even if another one matches", async () => {
    const shown = await runPython(
      python,
      `
import base64, hashlib, hmac, time
def refusal(call):
    try:
        return {"accepted": call()}
    except (ValueError, TypeError) as error:
        return [type(error).__name__, str(error)]
body, now = b'{"type":"turn.completed"}', str(int(time.time()))
forged = base64.b64encode(hmac.new(b"", f"i.{now}.".encode() + body, hashlib.sha256).digest()).decode()
headers = {"webhook-id": "i", "webhook-timestamp": now, "webhook-signature": "v1," + forged}
for secret in ("", " ", "whsec_", "whsec_***", "whsec_a", "whsec_YWJj\\u0130", None, b"secret", 5):
    show(refusal(lambda: webhooks.unwrap(body, headers, secret)) == refusal(lambda: webhooks.sign(body, secret)))
    show(refusal(lambda: webhooks.unwrap(body, headers, ["a good one", secret])))
for scheme in ("github", "stripe", "slack"):
    show(refusal(lambda: webhooks.sign(body, "", scheme=scheme)))
show(refusal(lambda: webhooks.unwrap(body, headers, [])))
unpadded = "whsec_" + base64.b64encode(b"a secret").decode().rstrip("=")
show(webhooks.unwrap(body, webhooks.sign(body, unpadded), unpadded + "="))
`,
    );
    const empty = ["ValueError", "The secret is empty. Pass the whole secret, as it was shown."];
    const notBase64 = [
      "ValueError",
      "The secret begins with `whsec_`, and the rest is not base64. Pass the whole secret, as it was shown.",
    ];
    const notText = (type: string) => ["ValueError", `A secret is text, not ${type}.`];
    const refusals = [empty, empty, ...Array(4).fill(notBase64), notText("NoneType"), notText("bytes"), notText("int")];
    expect(shown).toEqual([
      ...refusals.flatMap((refusal) => [true, refusal]),
      empty,
      empty,
      empty,
      ["ValueError", "Pass the secret of the channel or endpoint."],
      { type: "turn.completed" },
    ]);
  });

  test("refuse any unsigned request with one error", async () => {
    const shown = await runPython(
      python,
      `
import time
good = {"webhook-id": "i", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,x"}
odd = ["9" * 400, "9" * 5000, "-1", "+1", "", "\\u0661", "1e9", "\\udc80", "\\0", "v1,\\udc80", 5, None, ["x"], b"x"]
for name in good:
    for value in odd:
        show(failing(lambda: webhooks.unwrap("{}", {**good, name: value}, "secret"))["class"])
show(failing(lambda: webhooks.unwrap("\\udc80", good, "secret"))["class"])
`,
    );
    expect(shown).toEqual(Array(3 * 14 + 1).fill("BadSignatureError"));
  });
});
