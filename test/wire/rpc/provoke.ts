import type { ErrorName } from "#generated/errors.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { SECRETS, type SomeConfig, type Start, type TestGateway } from "#test/harness/gateway.ts";
import type { Transport, Way } from "#test/harness/rpc.ts";
import type { RpcAnswer } from "#test/harness/rpc-contract.ts";
import {
  agents,
  type CallOptions,
  commonProvocations,
  createGateways,
  failingStore,
  newSession,
  smallBudget,
  whileStoreFails,
} from "#test/wire/call/provoked.ts";

type Params = Record<string, unknown>;
export type Stage = {
  method: RpcMethod;
  /** The gateway of this name, started at its first use. */
  gatewayFor(name: string, start?: Start): Promise<TestGateway>;
  open: Way["open"];
};
export type Provoke = (stage: Stage) => Promise<RpcAnswer>;

/** The usual configuration, with these changes. */
export function configOf(config: SomeConfig): SomeConfig {
  const rpc = { ...config.gateway?.rpc, auth: { tokens: TOKENS } };
  return { agents, schedules, ...config, gateway: { defaultAgent: "main", ...config.gateway, rpc } };
}

/** Gateways of one transport, by their names. */
export function createStage(way: Way) {
  const trusting = { trustedProxies: ["127.0.0.1", "::1"], ...way.config?.gateway };
  return {
    open: way.open,
    ...createGateways((config) => configOf({ ...config, gateway: { ...config.gateway, ...trusting } })),
  };
}

/** Without a schedule, the list does not read the store. */
const yearly = { cron: "0 0 1 1 *", message: "hi" };
const schedules = { yearly, other: yearly };
const TOKENS = [
  { name: "ops", token: SECRETS.rpcToken, permissions: ["*"] },
  { name: "lister", token: "a-token-that-lists", permissions: ["agent.list" as const] },
  { name: "counter", token: "a-token-that-counts", permissions: ["usage.stats" as const] },
];

/** The usual call of each method. */
const USUAL: Partial<Record<RpcMethod, Params>> = {
  "agent.status": { agentName: "main" },
  "agent.reload": { agentName: "main" },
  "agent.sendMessage": { agentName: "main", message: "hi" },
  "session.get": { sessionId: "chat:gone" },
  "session.compact": { sessionId: "chat:gone" },
  "session.delete": { sessionId: "chat:gone" },
  "schedule.run": { scheduleName: "yearly" },
  "schedule.pause": { scheduleName: "yearly" },
  "schedule.resume": { scheduleName: "yearly" },
};

async function ask(transport: Transport, method: RpcMethod, params: Params): Promise<RpcAnswer> {
  const { text } = await transport.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  return JSON.parse(String(text));
}

type Change = { token?: string; headers?: Record<string, string>; params?: Params };

/** Makes the usual call of the method with this change. */
export async function call({ open, method }: Stage, gateway: TestGateway, change: Change = {}): Promise<RpcAnswer> {
  const { token = SECRETS.rpcToken, headers, params } = change;
  await using transport = await open(gateway, token, headers);
  return await ask(transport, method, { ...USUAL[method], ...params });
}

function send(stage: Stage, gateway: TestGateway, params: Params): Promise<RpcAnswer> {
  return call({ ...stage, method: "agent.sendMessage" }, gateway, { params });
}

export function usual({ gatewayFor }: Stage) {
  return gatewayFor("usual");
}

export async function withFailingStore(error: Error, stage: Stage): Promise<RpcAnswer> {
  // Each has its own gateway, because a gateway checks its health at most four times a second.
  const gateway = await stage.gatewayFor(`failing store, ${stage.method}`, {
    wrapStore: (store) => failingStore(store, { memoryToo: true }),
  });
  await using transport = await stage.open(gateway, SECRETS.rpcToken);
  return await whileStoreFails(error, () => ask(transport, stage.method, USUAL[stage.method] ?? {}));
}

/** The params of a call; a message waits for its reply. */
function paramsOf({ method }: Stage, { agent, session, model, key, isOther }: CallOptions): Params {
  const usual = USUAL[method] ?? {};
  return {
    ...(agent !== undefined && !("sessionId" in usual) && { agentName: agent }),
    ...(session !== undefined && { sessionId: session }),
    ...(model !== undefined && { model }),
    ...(key !== undefined && { idempotencyKey: key }),
    ...(isOther && { userId: "ada" }),
    ...(method === "agent.sendMessage" && { wait: true }),
  };
}

const common = commonProvocations<Stage, RpcAnswer>({
  nameOf: ({ method }) => method,
  gatewayFor: (stage, ...named) => stage.gatewayFor(...named),
  call: (stage, gateway, { token, headers, ...asked }) =>
    call(stage, gateway, {
      ...(token === null && { token: "nobody" }),
      ...(headers && { headers }),
      params: paramsOf(stage, asked),
    }),
  start: (stage, gateway, { agent, sessionId }) => send(stage, gateway, { agentName: agent, sessionId }),
  withFailingStore: (stage, error) => withFailingStore(error, stage),
  sessionIdOf: (_, __, session) => session,
  limited: { gateway: { rpc: { rateLimit: { maxRequests: 1, windowMs: 60_000 } } } },
  configOf,
});

/** The cause of each error, on any method that lists it. */
export const provocations: Partial<Record<ErrorName, Provoke>> = {
  ...common,
  "invalid-request": async (stage) => {
    await using transport = await stage.open(await usual(stage), SECRETS.rpcToken);
    return await ask(transport, stage.method, {});
  },
  "invalid-params": async (stage) => call(stage, await usual(stage), { params: { surprise: true } }),
  forbidden: async (stage) =>
    call(stage, await usual(stage), {
      token: stage.method === "agent.list" ? "a-token-that-counts" : "a-token-that-lists",
    }),
  internal: async (stage) => {
    if (!stage.method.endsWith(".reload")) return withFailingStore(new TypeError("it is broken"), stage);
    const readConfig = () => Promise.reject(new TypeError("it cannot be read"));
    return call(stage, await stage.gatewayFor("broken configuration", { readConfig }));
  },
  "session-not-found": async (stage) => call(stage, await usual(stage)),
  "budget-exceeded": async (stage) => {
    if (stage.method !== "session.compact") return common["budget-exceeded"](stage);
    const gateway = await stage.gatewayFor("small budget, session.compact", { config: smallBudget });
    const sessionId = newSession();
    await send(stage, gateway, { sessionId, wait: true });
    return call(stage, gateway, { params: { sessionId, keep: 0 } });
  },
  "store-full": async (stage) => {
    // Only a full disk refuses a deletion.
    if (stage.method === "session.delete")
      return withFailingStore(new GatewayError("store-full", "The store's disk is full."), stage);
    const gateway = await stage.gatewayFor(`small store, ${stage.method}`, { config: { limits: { storeBytes: 1 } } });
    const sessionId = newSession();
    await send(stage, gateway, { sessionId, wait: true });
    return call(stage, gateway, { params: { sessionId } });
  },
  "turn-failed": async (stage) => {
    if (stage.method === "agent.sendMessage") return common["turn-failed"](stage);
    const [gateway, sessionId] = [await usual(stage), newSession()];
    await send(stage, gateway, { agentName: "speechless", sessionId, wait: true });
    return call(stage, gateway, { params: { sessionId, keep: 0 } });
  },
  "turn-timeout": async (stage) => {
    if (stage.method === "agent.sendMessage") return common["turn-timeout"](stage);
    const [gateway, sessionId] = [await usual(stage), newSession()];
    await send(stage, gateway, { agentName: "endless", sessionId, wait: true });
    return call(stage, gateway, { params: { sessionId, keep: 0 } });
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
