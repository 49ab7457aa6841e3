import { describe, expect, onTestFinished, test } from "vitest";
import { SECRETS, type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "../ws/socket.ts";

const OWN = "a-key-with-its-own-limit";
const TOKEN = "a-token-with-its-own-limit";
const MINUTE = 60_000;

type Rate = { maxRequests: number; windowMs: number };

/** A surface's limit, and the own limit of a key and of a token. */
function configOf(surface: number, own: Rate | undefined): SomeConfig {
  const rateLimit = { maxRequests: surface, windowMs: MINUTE };
  const limit = own && { rateLimit: own };
  return {
    gateway: {
      openai: { enabled: true },
      rest: {
        rateLimit,
        auth: {
          keys: [
            { name: "own", key: OWN, ...limit },
            { name: "tests", key: SECRETS.key },
          ],
        },
      },
      rpc: {
        rateLimit,
        auth: {
          tokens: [
            { name: "own", token: TOKEN, permissions: "*", ...limit },
            { name: "ops", token: SECRETS.rpcToken, permissions: "*" },
          ],
        },
      },
    },
  };
}

async function start(config: SomeConfig) {
  const gateway = await startGateway({ config });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

/** The statuses of as many requests with the key. */
async function statuses({ rest }: Awaited<ReturnType<typeof start>>, key: string, count: number): Promise<number[]> {
  const found = [];
  for (let n = 0; n < count; n++) found.push((await rest.call("skills.list", { key })).status);
  return found;
}

describe("the rate limit of a key", () => {
  test.each([
    ["smaller", 5, 2],
    ["larger", 1, 3],
  ])("MUST replace that of REST where it is %s, and leave the other keys theirs", async (_, surface, own) => {
    const gateway = await start(configOf(surface, { maxRequests: own, windowMs: MINUTE }));
    expect(await statuses(gateway, OWN, own + 1)).toEqual([...Array(own).fill(200), 429]);
    expect(await statuses(gateway, SECRETS.key, surface + 1)).toEqual([...Array(surface).fill(200), 429]);
  });

  test("MUST hold where REST has no limit, and be told with a refusal", async () => {
    const gateway = await start(configOf(0, { maxRequests: 1, windowMs: 30_000 }));
    await statuses(gateway, OWN, 1);
    const { error, headers, problem } = await gateway.rest.call("skills.list", { key: OWN });
    expect([error, headers.get("ratelimit-policy")]).toEqual(["rate-limited", '"token";q=1;w=30']);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(problem).toMatchObject({ detail: "At most 1 requests in 30000 ms.", retry_after_ms: expect.any(Number) });
  });

  test("MUST count requests of clients of OpenAI with those of REST", async () => {
    const gateway = await start(configOf(0, { maxRequests: 2, windowMs: MINUTE }));
    await statuses(gateway, OWN, 1);
    const ask = async () => (await gateway.rest.call("models.list", { key: OWN })).error;
    expect([await ask(), await ask()]).toEqual([undefined, "rate-limited"]);
  });

  test("MUST hold for a created key, and for the key that replaces it", async () => {
    const gateway = await start(configOf(0, undefined));
    const body = { name: "widget", rate_limit: { limit: 2, window_ms: MINUTE } };
    const { json } = await gateway.console.call("keys.create", { body });
    expect(json.rate_limit).toEqual(body.rate_limit);
    expect(await statuses(gateway, String(json.key), 3)).toEqual([200, 200, 429]);
    const path = { key_id: String(json.key_id) };
    const { json: next } = await gateway.console.call("keys.rotate", { path, body: {} });
    expect(next.rate_limit).toEqual(body.rate_limit);
    expect(await statuses(gateway, String(next.key), 3)).toEqual([200, 200, 429]);
  });

  test("MUST be set, changed and taken away by a reload", async () => {
    const gateway = await start(configOf(0, undefined));
    expect(await statuses(gateway, OWN, 2)).toEqual([200, 200]);
    await gateway.reload(configOf(0, { maxRequests: 1, windowMs: MINUTE }));
    expect(await statuses(gateway, OWN, 2)).toEqual([200, 429]);
    await gateway.reload(configOf(0, { maxRequests: 2, windowMs: MINUTE }));
    expect(await statuses(gateway, OWN, 3)).toEqual([200, 200, 429]);
    await gateway.reload(configOf(0, undefined));
    expect(await statuses(gateway, OWN, 3)).toEqual([200, 200, 200]);
  });
});

describe("the rate limit of an RPC token", () => {
  test("MUST count its calls over HTTP and WebSocket together, and leave the other tokens theirs", async () => {
    const gateway = await start(configOf(10, { maxRequests: 3, windowMs: MINUTE }));
    const rpc = createRpc(gateway.url, TOKEN);
    using socket = await openSocket(gateway, { token: TOKEN });
    expect((await rpc.call("agent.list")).error).toBeUndefined();
    await socket.call("agent.list");
    expect((await rpc.call("agent.list")).error).toBeUndefined();
    const { error } = await socket.ask("agent.list");
    expect(error).toMatchObject({ code: -32004, data: { name: "rate-limited", retryAfterMs: expect.any(Number) } });
    expect((await rpc.call("agent.list")).error?.data.name).toBe("rate-limited");
    const other = createRpc(gateway.url, SECRETS.rpcToken);
    for (let n = 0; n < 10; n++) expect((await other.call("agent.list")).error).toBeUndefined();
    expect((await other.call("agent.list")).error?.data.name).toBe("rate-limited");
  });

  test("MUST count each call of a batch", async () => {
    const gateway = await start(configOf(0, { maxRequests: 2, windowMs: MINUTE }));
    const batch = [1, 2, 3].map((id) => ({ jsonrpc: "2.0", id, method: "agent.list" }));
    const { json } = await createRpc(gateway.url, TOKEN).send(batch);
    expect((json as unknown as { error?: object }[]).map(({ error }) => error !== undefined)).toEqual([
      false,
      false,
      true,
    ]);
  });
});
