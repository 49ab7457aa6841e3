import { expect, test } from "vitest";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { createRpc, transports, type Way } from "#test/harness/rpc.ts";

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "agent.list" });
const tokenAt = (n: number) => `rotated-token-number-${n}`;
const configAt = (n: number) => {
  const tokens = [n, n + 1].map((at) => ({ name: `t${at}`, token: tokenAt(at), permissions: ["*"] as "*"[] }));
  return { gateway: { rpc: { auth: { tokens } } } };
};

test("F16: tokens rotate 100 times under load, and no valid request fails", async () => {
  await using gateway = await startGateway({ config: configAt(0) });
  const rpc = createRpc(gateway.url);
  let current = 0;
  let answered = 0;
  let isOver = false;
  /** The oldest token that somebody is still on the way with. */
  const onTheWay = new Map<number, number>();
  const work = async (worker: number): Promise<void> => {
    while (!isOver) {
      onTheWay.set(worker, current);
      const { status, json } = await rpc.send(LIST, { token: tokenAt(current) });
      expect([status, json.error]).toEqual([200, undefined]);
      onTheWay.delete(worker);
      answered++;
    }
  };
  const workers = Promise.all([1, 2, 3, 4].map(work));
  for (let n = 1; n <= 100; n++) {
    // Everybody uses the newer of the two before the older one goes.
    current = n;
    while ([...onTheWay.values()].some((token) => token < n)) await new Promise(setImmediate);
    await gateway.reload(configAt(n));
  }
  isOver = true;
  await workers;
  expect(answered).toBeGreaterThan(100);
  expect(gateway.linesOf("auth.failed")).toEqual([]);
  for (const token of [tokenAt(0), tokenAt(99), SECRETS.rpcToken])
    expect((await rpc.send(LIST, { token })).status).toBe(401);
  for (const token of [tokenAt(100), tokenAt(101)]) expect((await rpc.send(LIST, { token })).status).toBe(200);
});

test("a token that a reload takes away loses an HTTP/2 connection's next call, and what it was sent before is kept", async () => {
  await using gateway = await startGateway({ config: configAt(0) });
  const { open } = transports["HTTP/2 in clear text"] as Way;
  await using transport = await open(gateway, tokenAt(0));
  expect((await transport.send(LIST)).status).toBe(200);
  await gateway.reload(configAt(1));
  expect((await transport.send(LIST)).status).toBe(401);
});

test("a token whose permissions a reload narrows may do no more than they say from then on", async () => {
  await using gateway = await startGateway();
  const rpc = createRpc(gateway.url);
  expect((await rpc.call("system.info")).error).toBeUndefined();
  const tokens = [{ name: "ops", token: SECRETS.rpcToken, permissions: ["agent.list"] as ["agent.list"] }];
  await gateway.reload({ gateway: { rpc: { auth: { tokens } } } });
  expect((await rpc.call("system.info")).error?.code).toBe(-32001);
  expect((await rpc.call("agent.list")).error).toBeUndefined();
});
