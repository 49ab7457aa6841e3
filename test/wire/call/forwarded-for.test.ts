import { describe, expect, test } from "vitest";
import { shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { recorderOf } from "#test/wire/rest/recorder.ts";

const PROXY = { trustedProxies: ["127.0.0.1", "10.0.0.0/8", "fd00::/8"] };
const OVER_TLS = { "x-forwarded-proto": "https" };
const LIST = { method: "GET", path: "/api/v1/skills/list" };
const WAKE = { method: "POST", path: "/hooks/wake" };
const gateway = await shareGateway({ config: { gateway: PROXY } });

async function addressOf(forwarded: string): Promise<string> {
  const headers = { ...OVER_TLS, "x-forwarded-for": forwarded };
  const { json } = await gateway.hooks.wake({ text: "hi" }, { headers });
  return (await recorderOf(gateway).get(String(json.deliveryId))).address;
}

describe("X-Forwarded-For of a trusted proxy", () => {
  test.each([
    ["203.0.113.5", "203.0.113.5"],
    ["203.0.113.5:4711", "203.0.113.5"],
    ['"203.0.113.5:4711"', "203.0.113.5"],
    ["2001:db8::1", "2001:db8::1"],
    ["2001:DB8:0:0::1", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["[2001:db8::1]:4711", "2001:db8::1"],
    ['"[2001:db8::1]:4711"', "2001:db8::1"],
    ["::ffff:203.0.113.5", "203.0.113.5"],
    ["[::FFFF:203.0.113.5]:4711", "203.0.113.5"],
    ["::ffff:cb00:7105", "203.0.113.5"],
    ["0:0:0:0:0:ffff:203.0.113.5", "203.0.113.5"],
    ["fe80::1%eth0", "fe80::1"],
  ])("F33: %s is the address %s, and everything to its left is ignored", async (hop, address) => {
    expect(await addressOf(hop)).toBe(address);
    expect(await addressOf(`192.0.2.1, ${hop}`)).toBe(address);
    expect(await addressOf(`192.0.2.1,${hop}, 10.1.2.3:80, "[fd00::1]:80"`)).toBe(address);
  });

  test.each([
    ["unknown"],
    ["_hidden"],
    ["for=203.0.113.5"],
    ["203.0.113.5:"],
    ["203.0.113.5:x"],
    ["203.0.113"],
    ["203.0.113.5.6"],
    ["[203.0.113.5]"],
    ["[2001:db8::1"],
    ["[2001:db8::1]4711"],
    ["2001:db8::1::2"],
    ['"203.0.113.5'],
    ["localhost"],
    [""],
    [" "],
  ])("F33: %j is not an address, and ends the search", async (hop) => {
    expect(await addressOf(hop)).toBe("unknown");
    expect(await addressOf(`192.0.2.1, ${hop}`)).toBe("unknown");
    expect(await addressOf(`192.0.2.1, ${hop}, 10.1.2.3`)).toBe("unknown");
    expect(await addressOf(`192.0.2.1, ${hop}, 203.0.113.5`)).toBe("203.0.113.5");
  });

  test("a proxy that makes its own request is the client", async () => {
    expect(await addressOf("10.1.2.3")).toBe("10.1.2.3");
    const { json } = await gateway.hooks.wake({ text: "hi" });
    expect((await recorderOf(gateway).get(String(json.deliveryId))).address).toBe("127.0.0.1");
  });

  test("F33: several headers are one list, in their order", async () => {
    const sent = async (...lines: string[]) => {
      await using connection = await openConnection(gateway.url);
      const request = requestText(WAKE, { "content-type": "application/json" }, `{"text":"hi"}`).toString();
      const own = `Authorization: Bearer ${gateway.webhookToken}\r\nX-Forwarded-Proto: https\r\n`;
      const forwarded = lines.map((line) => `X-Forwarded-For: ${line}\r\n`).join("");
      connection.write(request.replace("\r\n", `\r\n${own}${forwarded}`));
      const { json } = await connection.reply(WAKE);
      return (await recorderOf(gateway).get(String(json.deliveryId))).address;
    };
    expect(await sent("192.0.2.1", "203.0.113.5:4711")).toBe("203.0.113.5");
    expect(await sent("203.0.113.5", "10.1.2.3")).toBe("203.0.113.5");
    expect(await sent("203.0.113.5", "")).toBe("unknown");
    expect(await sent("192.0.2.1", "unknown")).toBe("unknown");
  });
});

describe("F33: a client that writes its own address to the left of a hop", () => {
  const ALLOWED = "203.0.113.7";
  const hops = ["198.51.100.1:4711", "[2001:db8::1]", "[2001:db8::1]:4711", "unknown", "_hidden", '"198.51.100.1"', ""];

  test("is not accepted by webhooks.allowedIps, even with every network", async () => {
    const allowedIps = [ALLOWED, "127.0.0.0/8"];
    await using closed = await startGateway({ config: { gateway: PROXY, webhooks: { allowedIps } } });
    const errorFor = async (forwarded: string) =>
      (await closed.hooks.wake({ text: "hi" }, { headers: { ...OVER_TLS, "x-forwarded-for": forwarded } })).error;
    expect(await errorFor(`${ALLOWED}:4711`)).toBeUndefined();
    for (const hop of hops) {
      expect(await errorFor(`${ALLOWED}, ${hop}`), hop).toBe("address-not-allowed");
      expect(await errorFor(`127.0.0.1, ${hop}`), hop).toBe("address-not-allowed");
    }
    await closed.reload({ gateway: PROXY, webhooks: { allowedIps: ["0.0.0.0/0", "::/0"] } });
    expect(await errorFor("192.0.2.1, 198.51.100.1:4711")).toBeUndefined();
    expect(await errorFor("192.0.2.1, unknown")).toBe("address-not-allowed");
  });

  test("is not exempt from the clear text rule", async () => {
    const authorization = `Bearer ${gateway.key}`;
    const config = { gateway: { ...PROXY, clearTextFrom: [ALLOWED] } };
    await using trusting = await startGateway({ config });
    const errorFor = async (forwarded: string) =>
      (await exchange(trusting.url, LIST, { authorization, "x-forwarded-for": forwarded })).error;
    expect(await errorFor(`${ALLOWED}:4711`)).toBeUndefined();
    for (const hop of hops)
      for (const own of [ALLOWED, "127.0.0.1", "::1"])
        expect(await errorFor(`${own}, ${hop}`), hop).toBe("tls-required");
  });

  test.each(hops)("is not exempt from the guess throttle: %j", async (hop) => {
    await using guessed = await startGateway({ config: { gateway: PROXY } });
    const guess = (n: number) =>
      exchange(guessed.url, LIST, { ...OVER_TLS, "x-forwarded-for": `192.0.2.${n}, ${hop}` });
    for (let n = 1; n <= 20; n++) expect((await guess(n)).headers.get("retry-after")).toBeNull();
    expect((await guess(21)).headers.get("retry-after")).not.toBeNull();
  });

  test("is counted with all others that the proxy does not name", async () => {
    await using guessed = await startGateway({ config: { gateway: PROXY } });
    const guess = (forwarded: Record<string, string>) => exchange(guessed.url, LIST, { ...OVER_TLS, ...forwarded });
    for (let n = 1; n <= 20; n++) await guess({ "x-forwarded-for": n % 2 === 0 ? "unknown" : `_${n}` });
    expect((await guess({ "x-forwarded-for": "203.0.113.9" })).headers.get("retry-after")).toBeNull();
    expect((await guess({ "x-forwarded-for": "_other" })).headers.get("retry-after")).not.toBeNull();
  });
});

describe("IPv6 clients", () => {
  const guess = (at: TestGateway, address: string) =>
    exchange(at.url, LIST, { ...OVER_TLS, "x-forwarded-for": address });

  test("are counted by their /64 when they guess", async () => {
    await using guessed = await startGateway({ config: { gateway: PROXY } });
    for (let n = 1; n <= 20; n++) await guess(guessed, `2001:db8:0:1:${n}::${n}`);
    expect((await guess(guessed, "2001:db8::1:ffff:0:0:1")).headers.get("retry-after")).not.toBeNull();
    expect((await guess(guessed, "2001:db8:0:2::1")).headers.get("retry-after")).toBeNull();
    expect(guessed.linesOf("auth.failed")[0]?.address).toBe("2001:db8:0:1:1::1");
  });

  test("are counted by their /64 when refusals are recorded", async () => {
    await using refused = await startGateway({ config: { gateway: PROXY, webhooks: { allowedIps: [] } } });
    for (let n = 1; n <= 30; n++) {
      const headers = { ...OVER_TLS, "x-forwarded-for": `2001:db8:0:1::${n}` };
      expect((await refused.hooks.wake({ text: "hi" }, { headers })).error).toBe("address-not-allowed");
    }
    const { length } = await recorderOf(refused).list({ outcome: "refused", limit: "100" });
    expect(length).toBe(20);
  });

  test("are allowed by their complete address", async () => {
    const allowedIps = ["2001:db8:0:1::7"];
    await using closed = await startGateway({ config: { gateway: PROXY, webhooks: { allowedIps } } });
    const errorFor = async (address: string) =>
      (await closed.hooks.wake({ text: "hi" }, { headers: { ...OVER_TLS, "x-forwarded-for": address } })).error;
    expect(await errorFor("2001:db8:0:1::7")).toBeUndefined();
    expect(await errorFor("2001:db8:0:1::8")).toBe("address-not-allowed");
  });
});
