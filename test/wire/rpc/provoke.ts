import type { ErrorName } from "#generated/errors.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { SECRETS, type Start, type TestGateway } from "#test/harness/gateway.ts";
import type { Transport, Way } from "#test/harness/rpc.ts";
import type { RpcAnswer } from "#test/harness/rpc-contract.ts";
import { agents, createGateways, failingStore, newSession, turnOf, whileStoreFails } from "#test/wire/call/provoked.ts";

type Params = Record<string, unknown>;
type Stage = {
  method: RpcMethod;
  /** The gateway of this name, made when it is first asked for. */
  gatewayFor(name: string, start?: Start): Promise<TestGateway>;
  open: Way["open"];
};
type Provoke = (stage: Stage) => Promise<RpcAnswer>;

/** Gateways of one transport, by their names. */
export function createStage(way: Way) {
  const trusting = { defaultAgent: "main", trustedProxies: ["127.0.0.1", "::1"], ...way.config?.gateway };
  const gateways = createGateways((config) => {
    const rpc = { ...config.gateway?.rpc, auth: { tokens: TOKENS } };
    return { agents, ...config, gateway: { ...trusting, rpc } };
  });
  return { open: way.open, ...gateways };
}

const TOKENS = [
  { name: "ops", token: SECRETS.rpcToken, permissions: ["*"] },
  { name: "lister", token: "a-token-that-lists", permissions: ["agent.list" as const] },
  { name: "counter", token: "a-token-that-counts", permissions: ["usage.stats" as const] },
];

/** How each method is usually called. */
const USUAL: Partial<Record<RpcMethod, Params>> = {
  "agent.status": { agentName: "main" },
  "agent.reload": { agentName: "main" },
  "agent.sendMessage": { agentName: "main", message: "hi" },
  "session.get": { sessionId: "chat:gone" },
  "session.compact": { sessionId: "chat:gone" },
  "session.delete": { sessionId: "chat:gone" },
};

function proxied(address: string): Record<string, string> {
  return {
    "x-forwarded-for": address,
    "x-forwarded-proto": "http",
  };
}

async function ask(transport: Transport, method: RpcMethod, params: Params): Promise<RpcAnswer> {
  const { text } = await transport.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  return JSON.parse(String(text));
}

type Change = { token?: string; headers?: Record<string, string>; params?: Params };

/** Calls the method as it is usually called, but for the change. */
async function call({ open, method }: Stage, gateway: TestGateway, change: Change = {}): Promise<RpcAnswer> {
  const { token = SECRETS.rpcToken, headers, params } = change;
  await using transport = await open(gateway, token, headers);
  return await ask(transport, method, { ...USUAL[method], ...params });
}

function send(stage: Stage, gateway: TestGateway, params: Params): Promise<RpcAnswer> {
  return call({ ...stage, method: "agent.sendMessage" }, gateway, { params });
}

function usual({ gatewayFor }: Stage) {
  return gatewayFor("usual");
}

async function withFailingStore(error: Error, stage: Stage): Promise<RpcAnswer> {
  // Each has a gateway of its own, as a gateway looks at its health at most four times a second.
  const gateway = await stage.gatewayFor(`failing store, ${stage.method}`, {
    wrapStore: (store) => failingStore(store, { memoryToo: true }),
  });
  await using transport = await stage.open(gateway, SECRETS.rpcToken);
  return await whileStoreFails(error, () => ask(transport, stage.method, USUAL[stage.method] ?? {}));
}

/** A session whose one turn runs until somebody ends it, and another waits behind it. */
async function fillQueue(stage: Stage, gateway: TestGateway): Promise<string> {
  const sessionId = newSession();
  for (const _ of [1, 2]) await send(stage, gateway, { agentName: "stuck", sessionId });
  return sessionId;
}

/** How each error comes about, on any method that lists it. */
export const provocations: Partial<Record<ErrorName, Provoke>> = {
  "invalid-request": async (stage) => {
    await using transport = await stage.open(await usual(stage), SECRETS.rpcToken);
    return await ask(transport, stage.method, {});
  },
  "invalid-params": async (stage) => call(stage, await usual(stage), { params: { surprise: true } }),
  unauthenticated: async (stage) => call(stage, await usual(stage), { token: "nobody" }),
  "tls-required": async (stage) => call(stage, await usual(stage), { headers: proxied("203.0.113.7") }),
  forbidden: async (stage) =>
    call(stage, await usual(stage), {
      token: stage.method === "agent.list" ? "a-token-that-counts" : "a-token-that-lists",
    }),
  "rate-limited": async (stage) => {
    const rpc = { rateLimit: { maxRequests: 1, windowMs: 60_000 } };
    const gateway = await stage.gatewayFor("limited", { config: { gateway: { rpc } } });
    await call(stage, gateway);
    return call(stage, gateway);
  },
  internal: async (stage) => {
    if (!stage.method.endsWith(".reload")) return withFailingStore(new TypeError("it is broken"), stage);
    const readConfig = () => Promise.reject(new TypeError("it cannot be read"));
    return call(stage, await stage.gatewayFor("broken configuration", { readConfig }));
  },
  "store-unavailable": (stage) => withFailingStore(new GatewayError("store-unavailable"), stage),

  "idempotency-in-progress": (stage) => withFailingStore(new GatewayError("idempotency-in-progress"), stage),

  "agent-not-found": async (stage) => call(stage, await usual(stage), { params: { agentName: "mian" } }),
  "session-not-found": async (stage) => call(stage, await usual(stage)),
  "turn-not-found": async (stage) => {
    const [gateway, params] = [await usual(stage), { sessionId: newSession(), idempotencyKey: newSession() }];
    await call(stage, gateway, { params });
    await gateway.gateway.store.deleteSession(params.sessionId, Date.now());
    return call(stage, gateway, { params });
  },
  "unknown-model": async (stage) =>
    call(stage, await usual(stage), { params: { agentName: "choosy", model: "gigantic" } }),
  "session-conflict": async (stage) => {
    const [gateway, sessionId] = [await usual(stage), newSession()];
    await call(stage, gateway, { params: { sessionId } });
    return call(stage, gateway, { params: { sessionId, agentName: "other" } });
  },
  "session-full": async (stage) => {
    const gateway = await stage.gatewayFor("short sessions", { config: { limits: { messagesPerSession: 2 } } });
    const sessionId = newSession();
    await call(stage, gateway, { params: { sessionId, wait: true } });
    return call(stage, gateway, { params: { sessionId } });
  },
  "session-busy": async (stage) => {
    const gateway = await stage.gatewayFor("short queues", { config: { limits: { turnsPerSession: 1 } } });
    const sessionId = await fillQueue(stage, gateway);
    const params = stage.method === "agent.sendMessage" ? { agentName: "stuck", sessionId } : { sessionId };
    return call(stage, gateway, { params });
  },
  "gateway-busy": async (stage) => {
    const gateway = await stage.gatewayFor("one queue", { config: { limits: { turns: 1 } } });
    await fillQueue(stage, gateway);
    return call(stage, gateway, { params: { sessionId: newSession() } });
  },
  "agent-unavailable": async (stage) =>
    call(stage, await usual(stage), { params: { agentName: "resting", wait: true } }),
  "store-full": async (stage) => {
    // Erasing is refused by a full disk alone.
    if (stage.method === "session.delete")
      return withFailingStore(new GatewayError("store-full", "The store's disk is full."), stage);
    const gateway = await stage.gatewayFor(`small store, ${stage.method}`, { config: { limits: { storeBytes: 1 } } });
    const sessionId = newSession();
    await send(stage, gateway, { sessionId, wait: true });
    return call(stage, gateway, { params: { sessionId } });
  },
  "idempotency-mismatch": async (stage) => {
    const [gateway, idempotencyKey] = [await usual(stage), newSession()];
    await call(stage, gateway, { params: { idempotencyKey } });
    return call(stage, gateway, { params: { idempotencyKey, userId: "ada" } });
  },
  "turn-failed": async (stage) => {
    const gateway = await usual(stage);
    if (stage.method === "agent.sendMessage")
      return call(stage, gateway, { params: { agentName: "broken", wait: true } });
    const sessionId = newSession();
    await send(stage, gateway, { agentName: "speechless", sessionId, wait: true });
    return call(stage, gateway, { params: { sessionId, keep: 0 } });
  },
  "turn-timeout": async (stage) => {
    const gateway = await usual(stage);
    if (stage.method === "agent.sendMessage")
      return call(stage, gateway, { params: { agentName: "late", wait: true } });
    const sessionId = newSession();
    await send(stage, gateway, { agentName: "endless", sessionId, wait: true });
    return call(stage, gateway, { params: { sessionId, keep: 0 } });
  },
  "turn-cancelled": async (stage) => {
    const [gateway, sessionId] = [await usual(stage), newSession()];
    const answer = call(stage, gateway, { params: { agentName: "stuck", sessionId, wait: true } });
    await gateway.gateway.store.cancelTurn(await turnOf(gateway, sessionId), Date.now());
    return answer;
  },
  "agent-removed": async (stage) => {
    const gateway = await stage.gatewayFor("an agent leaves");
    const sessionId = newSession();
    await send(stage, gateway, { agentName: "stuck", sessionId });
    const answer = call(stage, gateway, { params: { agentName: "stuck", sessionId, wait: true } });
    await turnOf(gateway, sessionId, 2);
    const { stuck: _, ...left } = agents;
    await gateway.reload({ agents: left, gateway: { defaultAgent: "main", rpc: { auth: { tokens: TOKENS } } } });
    return answer;
  },
  "shutting-down": async (stage) => {
    const gateway = await stage.gatewayFor(`the end, ${stage.method}`);
    await using transport = await stage.open(gateway, SECRETS.rpcToken);
    const sessionId = newSession();
    await send(stage, gateway, { sessionId, wait: true });
    await send(stage, gateway, { agentName: "stuck" });
    // The test that closes the gateways waits for its end.
    void gateway.gateway.drain("test", 1_000);
    return await ask(transport, stage.method, { ...USUAL[stage.method], sessionId });
  },
};
