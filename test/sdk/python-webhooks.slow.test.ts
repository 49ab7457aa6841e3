import { describe, expect, test } from "vitest";
import { webhooks } from "#generated/clients/typescript/src/index.ts";
import { pythons, runPython } from "./python.ts";

const body = JSON.stringify({ type: "turn.completed", data: { reply: "Größe" } });
const secret = `whsec_${Buffer.from("a secret of the tests").toString("base64")}`;

describe.concurrent.each(pythons)("the webhooks of the client for Python %s", (_, python) => {
  test("sign as the TypeScript client does", async () => {
    const schemes = ["standard-webhooks", "github", "stripe", "slack"] as const;
    const options = { id: "msg_1", timestamp: 1_700_000_000 };
    const signed = await runPython(
      python,
      `
for scheme in ${JSON.stringify(schemes)}:
    show(webhooks.sign(${JSON.stringify(body)}, "${secret}", scheme=scheme, id="msg_1", timestamp=1700000000))
`,
    );
    expect(signed).toEqual(
      await Promise.all(schemes.map((scheme) => webhooks.sign(body, secret, { scheme, ...options }))),
    );
  });

  test("unwrap what fits one of the secrets, and say why they refuse the rest", async () => {
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
show(failing(lambda: webhooks.unwrap(body + " ", headers, secret))["detail"])
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
      expect.stringContaining("fits none of the secrets"),
      expect.stringContaining("fits none of the secrets"),
      expect.stringContaining("more than 300 seconds from now"),
      expect.stringContaining("more than 300 seconds from now"),
      expect.stringContaining("fits none of the secrets"),
      "BadSignatureError",
    ]);
  });
});
