import { describe, expect, test } from "vitest";
import { privacyFaults } from "#test/harness/contract.ts";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { CERTIFICATE, OVER_TLS, openHttp2 } from "#test/harness/http2.ts";
import { noteChecked } from "#test/harness/ledger.ts";

const key = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };
const rpc = { authorization: `Bearer ${SECRETS.rpcToken}`, "content-type": "application/json" };
const NOTIFICATION = JSON.stringify({ jsonrpc: "2.0", method: "agent.list" });

// The other tests check the headers of each REST, RPC and webhook call with every reply.
describe("no cache stores, and no browser guesses the type of", async () => {
  const gateway = await shareGateway({ config: { gateway: { openai: { enabled: true } } } });

  test.each<[string, string, RequestInit]>([
    ["a stream", "/api/v1/chat/send", { method: "POST", headers: key, body: '{"message":"Hi","stream":true}' }],
    ["an answer without a body", "/rpc", { method: "POST", headers: rpc, body: NOTIFICATION }],
    ["a list of models", "/v1/models", { headers: key }],
    ["a refusal of the OpenAI door", "/v1/models", {}],
    ["a refused WebSocket", "/rpc/ws", {}],
    ["an unknown path", "/api/v1/nowhere", { headers: key }],
    ["a refusal of webhooks", "/hooks/wake", { method: "POST", body: "{}" }],
    ["the figures", "/metrics", { headers: rpc }],
  ])("%s", async (_, path, request) => {
    const response = await fetch(gateway.url + path, request);
    await response.text();
    noteChecked(response.headers.get("x-request-id") ?? "");
    expect(privacyFaults(response.headers)).toEqual([]);
  });
});

describe("Strict-Transport-Security is sent", () => {
  const HEALTH = { method: "GET", path: "/healthz" };
  const over = async (url: string, headers = {}, place = HEALTH) => {
    await using client = await openHttp2(url);
    const answer = await client.exchange(place, headers);
    noteChecked(answer.headers.get("x-request-id") ?? "");
    return answer.headers.get("strict-transport-security");
  };
  const clear = async (url: string, headers = {}) => {
    const answer = await fetch(`${url}/healthz`, { headers });
    noteChecked(answer.headers.get("x-request-id") ?? "");
    return answer.headers.get("strict-transport-security");
  };
  const named = { ":authority": "gateway.example.com" };

  test("with every answer over the gateway's own TLS, unless the listener turns it off", async () => {
    const allowed = { gateway: { ...OVER_TLS.gateway, allowedOrigins: ["https://gateway.example.com"] } };
    await using gateway = await startGateway({ config: allowed });
    expect(await over(gateway.url, named)).toBe("max-age=15768000");
    for (const path of ["/console", "/docs", "/nowhere", "/api/v1/skills/list"])
      expect(await over(gateway.url, named, { method: "GET", path })).toBe("max-age=15768000");
    const [listener] = allowed.gateway?.listeners ?? [];
    const off = { ...listener, tls: { ...listener?.tls, hsts: false } };
    await gateway.reload({ gateway: { ...allowed.gateway, listeners: [off] } } as typeof allowed);
    expect(await over(gateway.url, named)).toBeNull();
  });

  test("over HTTP/1.1, too", async () => {
    await using gateway = await startGateway({ config: OVER_TLS });
    const { request } = await import("node:https");
    const headers = await new Promise<NodeJS.Dict<string | string[]>>((resolve) =>
      request(`${gateway.url}/healthz`, { ca: CERTIFICATE }, (res) => resolve(res.resume().headers)).end(),
    );
    noteChecked(String(headers["x-request-id"]));
    expect(headers["strict-transport-security"]).toBe("max-age=15768000");
  });

  test("but not by the name localhost, which every project of a machine shares", async () => {
    await using gateway = await startGateway({ config: OVER_TLS });
    for (const host of ["localhost", "localhost:18789", "app.LOCALHOST"])
      expect(await over(gateway.url, { ":authority": host })).toBeNull();
  });

  test("never in clear text, also if a proxy ended TLS", async () => {
    await using gateway = await startGateway({ config: { gateway: { trustedProxies: ["127.0.0.1"] } } });
    expect(await clear(gateway.url)).toBeNull();
    expect(await clear(gateway.url, { "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1" })).toBeNull();
  });
});
