import type { Config, SurfaceName } from "#config/config.ts";
import type { Core } from "#core/core.ts";
import type { McpTools } from "#core/mcp-tools.ts";
import { agentFor } from "#core/reach.ts";
import type { Reloads } from "#core/reload.ts";
import { methods } from "#generated/methods.ts";
import type { Info } from "#generated/rpc-types.ts";
import { hooksHandlers } from "#handlers/hooks/table.ts";
import { CODE_TAKES } from "#handlers/rest/codes.ts";
import type { ConfigState } from "#handlers/rest/config.ts";
import { IDENTITY_TAKES } from "#handlers/rest/identity.ts";
import type { HooksUse } from "#handlers/rest/mappings.ts";
import { restHandlers } from "#handlers/rest/table.ts";
import { rpcHandlers } from "#handlers/rpc/table.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { once } from "#kit/once.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Events } from "#observe/events.ts";
import type { LoopLag } from "#observe/loop-lag.ts";
import { METRICS_TYPE, type Registry } from "#observe/metrics.ts";
import type { Access } from "#wire/call/access.ts";
import type { WireCall } from "#wire/call/call.ts";
import type { DoorAt } from "#wire/call/front.ts";
import { rateLimitOf } from "#wire/call/rate-limit.ts";
import type { Refusals } from "#wire/call/refusals.ts";
import { createHooksDoor } from "#wire/hooks/hooks.ts";
import { mappingRateKey, tokenRateKey } from "#wire/hooks/hooks-access.ts";
import { createHookCalls } from "#wire/hooks/hooks-call.ts";
import { CLOSED_MCP, createMcpDoor } from "#wire/mcp/mcp.ts";
import { type Documents, restPart, serveDocuments } from "#wire/pages/documents.ts";
import { createOpsDoors } from "#wire/pages/ops.ts";
import type { createServedAt } from "#wire/pages/served-at.ts";
import { createRestDoor, type RestDoorCaller } from "#wire/rest/rest.ts";
import { createRequestValidation, type ValidateRequest, validateHot } from "#wire/rest/rest-validation.ts";
import { BATCH_LIMIT, createRpcDispatch, type RpcMethods } from "#wire/rpc/rpc.ts";
import { createRpcHttpDoor } from "#wire/rpc/rpc-http.ts";
import { createRpcMethods } from "#wire/rpc/rpc-methods.ts";
import type { SocketTimes } from "#wire/socket/rpc-ws.ts";
import { createRpcSocketDoor } from "#wire/socket/rpc-ws.ts";
import { withSocketCalls } from "#wire/socket/socket-calls.ts";
import type { McpSurface } from "./mcp-surface.ts";
import { readinessOf } from "./process-health.ts";
import { draftOf } from "./settings.ts";

/** The parts that the surfaces share. `config` and `access` are those in force. */
export type SurfaceParts = {
  core: Core;
  reloads: Reloads;
  config: () => Config;
  access: () => Access;
  configState: () => ConfigState;
  clock: Clock;
  events: Events;
  registry: Registry;
  version: string;
  /** JSON without the secrets of the configuration. */
  hideInJson: (json: string) => string;
  uptimeMs: () => number;
  recordBodies: () => boolean;
  refusals: Refusals;
  isDraining: () => boolean;
  isShort: () => boolean;
  lag: LoopLag;
  socketTimes: SocketTimes | undefined;
  extraMethods: RpcMethods | undefined;
  mcpTools: McpTools | undefined;
  isServed: (surface: SurfaceName) => boolean;
  servedAt: ReturnType<typeof createServedAt>;
};

/** The webhooks: their door, the way in for requests that the flight recorder sends again, and how much of their rate limits is used. */
export function createHooks({ core, config, access, clock }: SurfaceParts) {
  const limit = () => config().webhooks.rateLimit;
  const rates = rateLimitOf(core.store, "hooks", clock, limit);
  const { record } = core.deliveries;
  const { run, call } = createHookCalls({ handlers: hooksHandlers(core), record });
  // Another path needs a restart.
  const { path } = config().webhooks;
  const door = createHooksDoor({
    path,
    run,
    limit,
    record,
    access: () => access().hooks,
    rateLimit: rates.count,
    bodyLimit: () => config().limits.webhookBody,
  });
  const use = async (): Promise<HooksUse> => {
    const { token: tokens, mappings } = config().webhooks;
    const signed = Object.keys(mappings).filter((name) => mappings[name]?.verify);
    const uses = await rates.read([...tokens.map(({ hash }) => tokenRateKey(hash)), ...signed.map(mappingRateKey)]);
    return {
      tokens: tokens.map(({ name, since }, index) => ({ name, since, rate: uses[index] })),
      mappings: new Map(signed.map((name, index) => [name, uses[tokens.length + index]])),
    };
  };
  return { door, call, use };
}

/** REST, and the OpenAI-compatible API, which accepts REST's keys. */
export function createRest(parts: SurfaceParts, hooks: Pick<ReturnType<typeof createHooks>, "call" | "use">) {
  const { core, config, access, clock, recordBodies } = parts;
  const withRestKeys = {
    identify: (hash: Buffer) => {
      const key = core.keys.use(hash);
      if (!key) return access().identifyConsole(hash);
      const { name, scopes, agents, rateLimit, budget, keyId: tokenId = `config:${name}` } = key;
      return { surface: "rest" as const, tokenId, name, scopes, agents, rateLimit, budget };
    },
    rateLimit: rateLimitOf(core.store, "rest", clock, () => config().gateway.rest.rateLimit).count,
    bodyLimit: () => config().limits.restBody,
  };
  const handlers = restHandlers(core, {
    callHook: hooks.call,
    hooksUse: hooks.use,
    readDraft: (draft) => draftOf(config(), draft),
    recordBodies,
    configState: parts.configState,
    maySignIn: ({ kind, token }) =>
      kind === "console"
        ? access().identifyConsole(hashOf(token)) !== undefined
        : core.keys.good(hashOf(token))?.scopes.includes("admin") === true,
  });
  const atRest = {
    surface: "rest" as const,
    handlers,
    validate: validateHot(async (...request) => (await restContract())(...request)),
  };
  // A REST key may have the same name, and its rate limit is its own.
  const rpcCallerOf = (hash: Buffer): RestDoorCaller | undefined => {
    const caller = config().gateway.rpc.enabled ? access().identifyRpc(hash) : undefined;
    return caller && { ...caller, tokenId: `rpc:${caller.tokenId}` };
  };
  const door = createRestDoor({ ...withRestKeys, ...atRest });
  /** The one call of REST whose token is a sign-in code. */
  const byCode = createRestDoor({
    ...withRestKeys,
    ...atRest,
    takes: CODE_TAKES,
    identify: (hash) => (core.codes.knows(hash) ? CODE_CALLER : undefined),
    rateLimit: () => undefined,
  });
  const redeem: typeof door = (call) => (call.req.method === "POST" ? byCode : door)(call);
  /** The one call of REST that an RPC token may make. */
  const identity = createRestDoor({
    ...withRestKeys,
    ...atRest,
    takes: IDENTITY_TAKES,
    identify: (hash) => withRestKeys.identify(hash) ?? rpcCallerOf(hash),
  });
  const openAi = createOpenAi(core, withRestKeys, (call) => parts.servedAt(call, "rest"));
  return { door, redeem, identity, openAi, handlers, keys: withRestKeys };
}

const CODE_CALLER = { surface: "rest", tokenId: "code", name: "sign-in code", scopes: ["chat"] } as const;

/** The contract for REST requests: one for all gateways of a process, because compiling takes long. */
export const restContract = once(async (): Promise<ValidateRequest> => {
  const { default: openapi } = await import("#generated/openapi.json");
  return createRequestValidation(restPart(openapi));
});

type OpenAiModule = typeof import("./openai-surface.ts");

/**
 * The surface for clients of OpenAI. While it is off, its paths answer an error in the shape that those clients read, and so do the paths that
 * clients with a wrong base URL call. The modules of the surface are loaded with the first request.
 */
function createOpenAi(
  core: Core,
  parts: Parameters<OpenAiModule["createOpenAiSurface"]>[1],
  servedAt: (call: WireCall) => string,
) {
  const surface = once(async () => (await import("./openai-surface.ts")).createOpenAiSurface(core, parts));
  const open: DoorAt = {
    prefix: "/v1",
    door: async (call) => await (await surface()).door(call),
    fail(call, error): void {
      surface().then(
        ({ fail }) => fail(call, error),
        () => call.res.destroy(),
      );
    },
  };
  const closed = () => {
    throw new GatewayError("not-found", OPENAI_CLOSED);
  };
  const misplaced = (call: WireCall) => {
    const words = `There is nothing at ${call.path.slice(0, PATH_LIMIT)} for clients of OpenAI.`;
    throw new GatewayError("not-found", `${words} Their base URL ends in /v1: set it to ${servedAt(call)}/v1.`);
  };
  const doorsWith = (door: DoorAt["door"], other: DoorAt["door"]): DoorAt[] => [
    { ...open, door },
    ...OPENAI_PATHS.map((prefix) => ({ ...open, prefix, door: other })),
  ];
  return { open: doorsWith(open.door, misplaced), closed: doorsWith(closed, closed) };
}

/** The paths of clients whose base URL lacks `/v1`, or is that of REST. */
const OPENAI_PATHS = ["", "/api/v1"].flatMap((base) =>
  ["chat/completions", "completions", "models", "embeddings", "responses"].map((path) => `${base}/${path}`),
);
/** The longest path that an error repeats. */
const PATH_LIMIT = 200;

const OPENAI_CLOSED =
  "The OpenAI-compatible API is off here: gateway.openai.enabled in the configuration turns it on, on the listeners that serve REST.";

/** The server of the Model Context Protocol, which accepts REST's keys. Its modules are loaded with the first request. */
export function createMcp(
  parts: SurfaceParts,
  { keys, handlers: rest }: Pick<ReturnType<typeof createRest>, "keys" | "handlers">,
  { handlers: rpc }: Pick<ReturnType<typeof createRpc>, "handlers">,
) {
  let loaded: McpSurface | undefined;
  let isNotifying = false;
  const serving = once(async () => {
    const { createMcpSurface } = await import("./mcp-surface.ts");
    loaded = createMcpSurface({ ...parts, rest, rpc });
    return loaded;
  });
  return {
    open: createMcpDoor({ ...keys, serving }),
    closed: CLOSED_MCP,
    /** The address of the server for the sender of a call; undefined while it is off. */
    at: (call: WireCall) =>
      parts.config().gateway.mcp.enabled && parts.isServed("rest") ? `${parts.servedAt(call, "rest")}/mcp` : undefined,
    /** To be called for each part of a reload. Clients are notified once, after all of them. */
    changed(): void {
      if (isNotifying || loaded === undefined) return;
      isNotifying = true;
      queueMicrotask(() => {
        isNotifying = false;
        loaded?.changed();
      });
    },
  };
}

/** The 14 methods behind one dispatcher, and the doors that lead to it: HTTP and WebSocket. */
export function createRpc(parts: SurfaceParts, documents: () => Promise<Documents>) {
  const { core, config, access, clock, events, servedAt, hideInJson } = parts;
  const rateLimit = rateLimitOf(core.store, "rpc", clock, () => config().gateway.rpc.rateLimit).count;
  const placeOf = (call: WireCall | undefined) => servedAt(call, "rpc");
  const startedAt = new Date(clock.now() - parts.uptimeMs()).toISOString();
  const info = (agents: readonly string[] | undefined) => infoOf(parts, startedAt, agents);
  const handlers = rpcHandlers({ ...parts, info });
  const own = createRpcMethods(handlers, async ({ exchange }) =>
    JSON.parse(String((await documents()).openrpc(exchange.servedAt?.() ?? placeOf(undefined)))),
  );
  const table: RpcMethods = new Map([...own, ...(parts.extraMethods ?? [])]);
  // The calls of a token are counted over both transports.
  const dispatchOf = (methods: RpcMethods) => createRpcDispatch(methods, { events, rateLimit, hideInJson });
  const http = createRpcHttpDoor({
    dispatch: dispatchOf(table),
    identify: (hash) => access().identifyRpc(hash),
    servedAt: placeOf,
    bodyLimit: () => config().limits.rpcBody,
  });
  const socket = createRpcSocketDoor({
    clock,
    events,
    recordBodies: parts.recordBodies,
    servedAt: placeOf,
    hideInJson,
    dispatch: dispatchOf(withSocketCalls(table)),
    store: core.store,
    streams: core.streams,
    gatewayStream: core.gatewayStream,
    deliveryFeed: core.deliveryFeed,
    requireAgent: (caller, name) => void agentFor(core.agents, caller, name),
    identify: (hash) => (config().gateway.rpc.enabled ? access().identifyRpc(hash) : undefined),
    messageLimit: () => config().limits.rpcBody,
    socketsPerAddress: () => config().gateway.rpc.socketsPerAddress,
    isDraining: parts.isDraining,
    refusals: parts.refusals,
    times: parts.socketTimes,
  });
  return { http, socket, handlers };
}

/** The facts about this gateway in `system.info`, with the turns of these agents or of all. */
function infoOf(
  { core, config, version, isServed }: SurfaceParts,
  startedAt: string,
  agents: readonly string[] | undefined,
): Info {
  const { gateway, webhooks, limits } = config();
  return {
    name: "agent-gateway",
    version,
    // This process, among those that share a store.
    node: { id: core.node, runtime: `node ${process.version}` },
    startedAt,
    surfaces: [
      { name: "rest", enabled: isServed("rest"), path: "/api/v1" },
      { name: "rpc", enabled: isServed("rpc"), path: "/rpc" },
      { name: "webhooks", enabled: isServed("webhooks"), path: webhooks.path },
      { name: "console", enabled: isServed("console"), path: "/console" },
      // With REST's keys, where REST is.
      { name: "openai", enabled: gateway.openai.enabled && isServed("rest"), path: "/v1" },
      { name: "mcp", enabled: gateway.mcp.enabled && isServed("rest"), path: "/mcp" },
    ],
    methods: Object.keys(methods),
    limits: { ...limits, batch: BATCH_LIMIT },
    turnsPerMinute: core.turnsPerMinute.read(agents),
  };
}

/** The served specs, read at their first request. Another path of webhooks needs a restart. */
export function createDocuments(webhookPath: string) {
  return once(async (): Promise<Documents> => {
    const [openapi, openrpc] = await Promise.all([
      import("#generated/openapi.json"),
      import("#generated/openrpc.json"),
    ]);
    return serveDocuments({ openapi: openapi.default, openrpc: openrpc.default }, webhookPath);
  });
}

/** The pages for operators and tools. */
export function createOps(parts: SurfaceParts, documents: () => Promise<Documents>, isRestReady: () => boolean) {
  return createOpsDoors({
    ...parts,
    documents,
    readiness: () => readinessOf(parts, isRestReady()),
    metrics: parts.registry.scrape,
    metricsType: METRICS_TYPE,
    identifyRpc: (hash) => parts.access().identifyRpc(hash),
  });
}
