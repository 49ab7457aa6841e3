import { describe, expect, it } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";

const EXPIRED = "a-key-that-was-good-once";
const READER = "an-rpc-token-that-may-read";
const config = {
  gateway: {
    rest: {
      auth: {
        keys: [
          { name: "shop", key: SECRETS.key },
          { name: "on-call", key: SECRETS.adminKey, scopes: ["admin"] },
          { name: "laptop", key: EXPIRED, expiresAt: "2020-01-31" },
        ],
      },
    },
    rpc: {
      auth: {
        tokens: [
          { name: "ops", token: SECRETS.rpcToken, permissions: "*" },
          { name: "shop", token: READER, permissions: ["agent.list", "session.list"] },
        ],
      },
    },
  },
} as never;

const NO_LIMITS = { agents: null, rate_limit: null, budget: null };

describe("identity.get", async () => {
  const gateway = await shareGateway({ config });
  const ask = (key: string | null) => gateway.rest.send("GET", "/api/v1/identity", { key });

  it("MUST return the kind, name, rights and limits of each token", async () => {
    const found = await Promise.all(
      [SECRETS.consoleToken, SECRETS.adminKey, SECRETS.key, SECRETS.rpcToken, READER].map(ask),
    );
    expect(found.map(({ status, json }) => [status, json])).toEqual([
      [200, { kind: "console", name: "console", scopes: ["console"], permissions: ["*"], ...NO_LIMITS }],
      [200, { kind: "key", name: "on-call", scopes: ["admin"], permissions: [], ...NO_LIMITS }],
      [200, { kind: "key", name: "shop", scopes: ["chat"], permissions: [], ...NO_LIMITS }],
      [200, { kind: "rpc", name: "ops", scopes: [], permissions: ["*"], ...NO_LIMITS }],
      [200, { kind: "rpc", name: "shop", scopes: [], permissions: ["agent.list", "session.list"], ...NO_LIMITS }],
    ]);
    expect(found[0]?.headers.get("cache-control")).toContain("no-store");
  });

  it("MUST name the key and the time of an expired key", async () => {
    const { status, error, problem } = await ask(EXPIRED);
    expect([status, error, problem.detail]).toEqual([
      401,
      "key-expired",
      "The key `laptop` expired at 2020-01-31T00:00:00.000Z. Create a new one on the console's settings page.",
    ]);
  });

  it("MUST refuse a missing token, an unknown one and the webhook token with the same error", async () => {
    const refused = await Promise.all([null, "nobody", SECRETS.webhookToken].map(ask));
    expect(new Set(refused.map(({ status, error, problem }) => `${status} ${error} ${problem.detail}`)).size).toBe(1);
    expect(refused[0]).toMatchObject({ status: 401, error: "unauthenticated" });
  });

  it("MUST be the only REST call that an RPC token may make", async () => {
    for (const key of [SECRETS.rpcToken, READER]) {
      expect(await gateway.rest.call("skills.list", { key })).toMatchObject({ status: 401 });
      expect(await gateway.rest.send("GET", "/api/v1/identity/", { key })).toMatchObject({ status: 401 });
      expect(await gateway.rest.send("POST", "/api/v1/identity", { key, body: {} })).toMatchObject({ status: 405 });
    }
  });

  it("MUST leave no record when it succeeds", async () => {
    const before = (await gateway.console.call("deliveries.list")).json.deliveries as object[];
    await ask(READER);
    await ask(SECRETS.key);
    const after = (await gateway.console.call("deliveries.list")).json.deliveries as object[];
    expect(after).toEqual(before);
  });
});

it("MUST count an RPC token separately from a REST key of the same name", async () => {
  const limited = structuredClone(config) as { gateway: { rest: object } };
  Object.assign(limited.gateway.rest, { rateLimit: { maxRequests: 1, windowMs: 60_000 } });
  await using gateway = await startGateway({ config: limited as never });
  const ask = async (key: string) => (await gateway.rest.send("GET", "/api/v1/identity", { key })).status;
  expect([await ask(READER), await ask(SECRETS.key), await ask(READER), await ask(SECRETS.key)]).toEqual([
    200, 200, 429, 429,
  ]);
});

it("MUST refuse an RPC token while RPC is off", async () => {
  const closed = structuredClone(config) as { gateway: { rpc: object } };
  Object.assign(closed.gateway.rpc, { enabled: false });
  await using gateway = await startGateway({ config: closed as never });
  expect(await gateway.rest.send("GET", "/api/v1/identity", { key: READER })).toMatchObject({ status: 401 });
});
