import { describe, expect, test } from "vitest";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc, transports, type Way } from "#test/harness/rpc.ts";

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "agent.list" });
function tokenAt(n: number) {
  return `rotated-token-number-${n}`;
}
function rpcTokens(...numbers: number[]): SomeConfig {
  const tokens = numbers.map((n) => ({ name: `t${n}`, token: tokenAt(n), permissions: ["*"] as "*"[] }));
  return { gateway: { rpc: { auth: { tokens } } } };
}

type Door = {
  configOf(...numbers: number[]): SomeConfig;
  send(to: TestGateway, token: string): Promise<{ status: number }>;
};
const DOORS: [string, Door][] = [
  [
    "keys of REST",
    {
      configOf: (...numbers) => ({
        gateway: { rest: { auth: { keys: numbers.map((n) => ({ name: `key ${n}`, key: tokenAt(n) })) } } },
      }),
      send: ({ rest }, key) => rest.call("skills.list", { key }),
    },
  ],
  ["tokens of RPC", { configOf: rpcTokens, send: ({ url }, token) => createRpc(url).send(LIST, { token }) }],
  [
    "tokens of webhooks",
    {
      configOf: (...numbers) => ({ webhooks: { token: numbers.map(tokenAt) } }),
      send: ({ hooks }, token) => hooks.wake({ text: "hi" }, { token }),
    },
  ],
];

test.each(DOORS)(
  "F16: %s are rotated 100 times under load, and no valid request fails",
  async (_, { configOf, send }) => {
    await using gateway = await startGateway({ config: configOf(0, 1) });
    let current = 0;
    let answered = 0;
    let isOver = false;
    /** The oldest token of a request in progress. */
    const onTheWay = new Map<number, number>();
    const work = async (worker: number): Promise<void> => {
      while (!isOver) {
        onTheWay.set(worker, current);
        expect((await send(gateway, tokenAt(current))).status).toBe(200);
        onTheWay.delete(worker);
        answered++;
      }
    };
    const workers = Promise.all([1, 2, 3, 4].map(work));
    for (let n = 1; n <= 100; n++) {
      // Every caller uses the newer token before the older one is removed.
      current = n;
      while ([...onTheWay.values()].some((token) => token < n)) await new Promise(setImmediate);
      await gateway.reload(configOf(n, n + 1));
    }
    isOver = true;
    await workers;
    expect(answered).toBeGreaterThan(100);
    expect(gateway.linesOf("auth.failed")).toEqual([]);
    for (const [n, status] of [0, 99, 100, 101].map((n) => [n, n < 100 ? 401 : 200] as const))
      expect([n, (await send(gateway, tokenAt(n))).status]).toEqual([n, status]);
  },
);

test("F16: a hundred keys are created one after another: no valid request fails, and a revoked key fails at once", async () => {
  await using gateway = await startGateway();
  const mint = async (name: string) =>
    (await gateway.console.call("keys.create", { body: { name } })).json as { key: string; key_id: string };
  let current = await mint("rotation 0");
  const retired = new Set<string>();
  let served = 0;
  let rotating = true;
  const worker = async () => {
    while (rotating) {
      const { key } = current;
      const reply = await gateway.rest.call("skills.list", { key });
      // Only a key that was revoked during the request may have failed.
      if (reply.status === 200) served++;
      else expect(retired.has(key), `a valid key was refused: ${reply.text}`).toBe(true);
    }
  };
  const load = [worker(), worker(), worker(), worker()];
  for (let n = 1; n <= 100; n++) {
    const old = current;
    current = await mint(`rotation ${n}`);
    retired.add(old.key);
    expect((await gateway.console.call("keys.revoke", { path: { key_id: old.key_id } })).status).toBe(204);
    expect((await gateway.rest.call("skills.list", { key: old.key })).error).toBe("unauthenticated");
  }
  rotating = false;
  await Promise.all(load);
  expect(served).toBeGreaterThan(100);
});

describe("a reload", () => {
  test("refuses the next call of an HTTP/2 connection whose token was removed", async () => {
    await using gateway = await startGateway({ config: rpcTokens(0, 1) });
    const { open } = transports["HTTP/2 in clear text"] as Way;
    await using transport = await open(gateway, tokenAt(0));
    expect((await transport.send(LIST)).status).toBe(200);
    await gateway.reload(rpcTokens(1, 2));
    expect((await transport.send(LIST)).status).toBe(401);
  });

  test("that reduces a token's permissions takes effect immediately", async () => {
    await using gateway = await startGateway();
    const rpc = createRpc(gateway.url);
    expect((await rpc.call("system.info")).error).toBeUndefined();
    const tokens = [{ name: "ops", token: SECRETS.rpcToken, permissions: ["agent.list"] as ["agent.list"] }];
    await gateway.reload({ gateway: { rpc: { auth: { tokens } } } });
    expect((await rpc.call("system.info")).error?.code).toBe(-32001);
    expect((await rpc.call("agent.list")).error).toBeUndefined();
  });
});
