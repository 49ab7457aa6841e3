import { expect, test } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";
import { senders } from "#test/harness/senders.ts";

const verify = { type: "github", secret: senders.github.makeSecret("first") } as const;
const gateway = await shareGateway({
  config: {
    gateway: { openai: { enabled: true }, trustedProxies: ["127.0.0.1"] },
    webhooks: { mappings: { signed: { match: {}, message: "hi", verify } } },
  },
});
let clients = 0;
async function send(method: string, path: string, headers: Record<string, string> = {}) {
  const from = { "x-forwarded-for": `198.51.100.${++clients}`, "x-forwarded-proto": "https", ...headers };
  const reply = await exchange(gateway.url, { method, path }, from, method === "POST" ? "{}" : undefined);
  return { ...reply, address: from["x-forwarded-for"] };
}

const REST = "takes a REST key: `Authorization: Bearer <key>`.";
const RPC = "takes an RPC token: `Authorization: Bearer <token>`.";
const METRICS = "takes an RPC token with the permission `system.health`: `Authorization: Bearer <token>`.";
const HOOKS = "takes the webhook token: `Authorization: Bearer <token>` or `x-gateway-token: <token>`.";
const doors = [
  ["GET", "/api/v1/skills/list", `\`/api/v1\` ${REST}`, gateway.rpcToken],
  ["GET", "/v1/models", `\`/v1\` ${REST}`, gateway.rpcToken],
  ["POST", "/rpc", `\`/rpc\` ${RPC}`, gateway.key],
  ["GET", "/metrics", `\`/metrics\` ${METRICS}`, gateway.key],
  ["POST", "/hooks/wake", `\`/hooks\` ${HOOKS}`, gateway.rpcToken],
] as const;

test.each(doors)(
  "401 of %s %s says which token is required, and what was sent instead",
  async (method, path, takes, otherDoors) => {
    const json = { "content-type": "application/json" };
    const missing = await send(method, path, json);
    expect(missing.status).toBe(401);
    expect(missing.text).toContain(
      JSON.stringify(`${takes} The request has none, or one that is not valid here.`).slice(1, -1),
    );
    const bare = ({ text }: { text: string }) => text.replace(/req_[0-9A-Z]{26}/, "req");
    // A token of another surface looks like any other token, in any header.
    for (const token of ["wrong", otherDoors]) {
      expect(bare(await send(method, path, { ...json, authorization: `Bearer ${token}` }))).toBe(bare(missing));
      const { text } = await send(method, path, { ...json, "x-api-key": token });
      expect(text).toContain("You sent `x-api-key`, which this path does not read.");
      expect(text).not.toContain(token);
    }
  },
);

test("tls-required names the ways to be accepted", async () => {
  const { json } = await send("GET", "/api/v1/skills/list", { "x-forwarded-proto": "http" });
  expect(json.detail).toBe(
    "The token was sent in clear text from another machine. Use TLS (https), or name the network in gateway.clearTextFrom, or the proxy that ends TLS in gateway.trustedProxies.",
  );
});

test.each([
  ["GET", "/api/v1/turns/a-token-of-somebody", { path: "/api/v1/turns/{turn_id}" }],
  ["GET", "/api/v1/a-token-of-somebody", { path: "/api/v1/*" }],
  ["GET", "/v1/a-token-of-somebody", { path: "/v1/*" }],
  ["POST", "/rpc", { path: "/rpc" }],
  ["GET", "/metrics", { path: "/metrics" }],
  ["POST", "/hooks/wake", { path: "/hooks/wake" }],
  ["POST", "/hooks", { path: "/hooks" }],
  ["POST", "/hooks/signed", { path: "/hooks/signed", mapping: "signed" }],
  ["POST", "/hooks/a-token-of-somebody", { path: "/hooks/{name}" }],
] as const)("auth.failed of %s %s has its path and mapping, and no invented value of the caller", async (...call) => {
  const [method, path, fields] = call;
  const { address, status } = await send(method, path, { "content-type": "application/json" });
  expect(status).toBe(401);
  const line = await gateway.logged("auth.failed", { address });
  expect(line).toMatchObject(fields);
  expect("mapping" in line).toBe("mapping" in fields);
  expect(JSON.stringify(gateway.logs)).not.toContain("a-token-of-somebody");
});
