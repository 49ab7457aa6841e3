import { describe, expect, test } from "vitest";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import type { HookSending } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { senders } from "#test/harness/senders.ts";

const PROXY = { trustedProxies: ["127.0.0.1"] };
const GITHUB = senders.github.makeSecret("first");
const mappings = { signed: { match: {}, message: "hi", verify: { type: "github", secret: GITHUB } } } as const;
const gateway = await shareGateway({ config: { gateway: PROXY, webhooks: { mappings } } });
function wake(headers: Record<string, string | null>, at = gateway.hooks) {
  return at.wake({ text: "hi" }, { headers });
}

/** The bytes of a reply, without the parts that change each time. */
function bareOf({ status, headers, text }: Reply) {
  return {
    status,
    headers: [...headers].filter(([name]) => name !== "x-request-id" && name !== "date"),
    text: text.replace(/req_[0-9A-Z]{26}/, "req"),
  };
}

describe("a webhook in clear text", () => {
  const clear = { "x-forwarded-for": "203.0.113.7" };

  test("from another machine is refused before its token or its signature is checked", async () => {
    const bare = async (sending: HookSending, below = "/wake") =>
      bareOf(
        await gateway.hooks.send(below, { text: "hi" }, { ...sending, headers: { ...clear, ...sending.headers } }),
      );
    const goodToken = await bare({});
    expect(goodToken.status).toBe(403);
    expect(goodToken.text).toContain("tls-required");
    expect(await bare({ token: "wrong" })).toEqual(goodToken);
    const signature = await senders.github.sign(GITHUB, '{"text":"hi"}');
    expect((await bare({ token: null, headers: signature }, "/signed")).status).toBe(403);
  });

  test("is accepted from a configured network", async () => {
    await using trusting = await startGateway({ config: { gateway: { ...PROXY, clearTextFrom: ["203.0.113.0/24"] } } });
    expect((await wake(clear, trusting.hooks)).status).toBe(200);
    expect((await wake({ "x-forwarded-for": "203.0.114.7" }, trusting.hooks)).error).toBe("tls-required");
  });
});

describe("webhooks.allowedIps", () => {
  const from = (address: string) => ({ "x-forwarded-for": address, "x-forwarded-proto": "https" });

  test("accepts only listed addresses and networks, whatever the sender sends", async () => {
    const allowedIps = ["203.0.113.7", "198.51.100.0/24", "2001:db8::/32"];
    await using closed = await startGateway({ config: { gateway: PROXY, webhooks: { allowedIps, mappings } } });
    const errorFrom = async (address: string, sending: HookSending = {}) =>
      (await closed.hooks.wake({ text: "hi" }, { ...sending, headers: { ...from(address), ...sending.headers } }))
        .error;
    for (const address of ["203.0.113.7", "198.51.100.1", "2001:db8::1", "::ffff:203.0.113.7"])
      expect(await errorFrom(address), address).toBeUndefined();
    for (const address of ["203.0.113.8", "198.51.101.1", "2001:db9::1", "127.0.0.1", "10.0.0.1"])
      expect(await errorFrom(address), address).toBe("address-not-allowed");
    expect(await errorFrom("203.0.113.8", { token: "wrong" })).toBe("address-not-allowed");
    const signature = await senders.github.sign(GITHUB, "{}");
    const signed = await closed.hooks.named("signed", "{}", { headers: { ...signature, ...from("203.0.113.8") } });
    expect(signed.error).toBe("address-not-allowed");
    // REST and RPC accept every address.
    expect((await closed.rest.call("skills.list", { headers: from("203.0.113.8") })).status).toBe(200);
    // The address that an unknown client claims is ignored.
    expect(await errorFrom("203.0.113.7, 203.0.113.8")).toBe("address-not-allowed");
  });

  test("is checked against the proxy's address if the configuration does not name the proxy", async () => {
    await using closed = await startGateway({ config: { webhooks: { allowedIps: ["203.0.113.7"] } } });
    expect((await wake(from("203.0.113.7"), closed.hooks)).error).toBe("address-not-allowed");
    await closed.reload({ webhooks: { allowedIps: ["127.0.0.0/8"] } });
    expect((await wake(from("203.0.113.7"), closed.hooks)).status).toBe(200);
  });

  test("refuses every sender if it is empty", async () => {
    await using closed = await startGateway({ config: { webhooks: { allowedIps: [] } } });
    expect((await wake({}, closed.hooks)).error).toBe("address-not-allowed");
  });
});
