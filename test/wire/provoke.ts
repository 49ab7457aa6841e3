import type { Backend } from "#backends/backend.ts";
import { GatewayError } from "#core/errors.ts";
import type { ErrorName } from "#generated/errors.ts";
import type { Store } from "#store/store.ts";
import { createPuppet } from "#test/harness/backends.ts";
import type { Route } from "#test/harness/contract.ts";
import { SECRETS, type Start, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { type Reply, targetOf } from "#test/harness/rest.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { makeBackend } from "../../src/settings.ts";

/** Makes an operation answer with an error, for real. */
export type Provoke = (route: Route) => Promise<Reply>;

const skills = { dirs: [skillsFolder(SUMMARISE)] };
const stuck: Backend = { ...createPuppet().backend, kind: "stuck" };
const choosy: Backend = { ...createPuppet(["fast", "deep"]).backend, kind: "choosy" };
const backends: Record<string, Backend> = { stuck, choosy };

const agents = {
  main: { backend: "echo" },
  other: { backend: "echo" },
  broken: { backend: "echo", echo: { fail: "The backend answered 503 three times." } },
  late: { backend: "echo", deadline: "1ms", echo: { delayMs: 60_000 } },
  stuck: { backend: "echo" },
  choosy: { backend: "echo" },
} as const;

/** Gateways that are started when a case needs one, and serve every operation. */
const started = new Map<string, Promise<TestGateway>>();
const gatewayFor = (name: string, { config, ...options }: Start = {}): Promise<TestGateway> => {
  const known = started.get(name);
  if (known) return known;
  const gateway = startGateway({
    makeBackend: (agent, settings) => backends[agent] ?? makeBackend(agent, settings),
    config: {
      agents,
      skills,
      ...config,
      gateway: { defaultAgent: "main", trustedProxies: ["127.0.0.1"], ...config?.gateway },
    },
    ...options,
  });
  started.set(name, gateway);
  return gateway;
};
const usual = () => gatewayFor("usual");

export const closeGateways = async (): Promise<void> => {
  for (const gateway of started.values()) await (await gateway)[Symbol.asyncDispose]();
};

/** A store that fails when told to, as an engine that lost its disk or its database does. */
let storeError: GatewayError | undefined;
const failingStore = (store: Store): Store =>
  new Proxy(store, {
    get: (own, name) => {
      const method = own[name as keyof Store];
      if (typeof method !== "function" || name === "watch" || name === "stats" || name === Symbol.asyncDispose)
        return method;
      return async (...args: never[]) => {
        if (storeError) throw storeError;
        return await (method as (...args: never[]) => unknown).apply(own, args);
      };
    },
  });

const withFailingStore = async (error: GatewayError, route: Route): Promise<Reply> => {
  const gateway = await gatewayFor("failing store", { wrapStore: failingStore });
  storeError = error;
  try {
    return await call(gateway, route);
  } finally {
    storeError = undefined;
  }
};

const BODIES: Partial<Record<string, Record<string, unknown>>> = {
  "chat.send": { message: "hi" },
  "skills.trigger": { skill_id: "summarise-thread" },
  "keys.create": { name: "support desk" },
};
const IDS = { turn_id: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N", key_id: "key_01M7WW41SHF3C7M5K2ZBW6QXRD" };

const keyFor = ({ scope, operation }: Route): string => {
  if (operation === "ops.metrics") return SECRETS.rpcToken;
  return scope === "console" ? SECRETS.consoleToken : SECRETS.key;
};

type Change = {
  method?: string;
  path?: Record<string, string>;
  target?: string;
  headers?: Record<string, string>;
  key?: string | null;
  /** Fields beside the usual ones. */
  fields?: Record<string, unknown>;
  body?: unknown;
};

/** Calls an operation as it is usually called, but for the change. */
const call = (gateway: TestGateway, route: Route, change: Change = {}): Promise<Reply> => {
  const { method = route.method, path = IDS, target = targetOf(route.path, { path }), headers, fields } = change;
  const usualBody = BODIES[route.operation];
  const body = "body" in change ? change.body : usualBody && { ...usualBody, ...fields };
  const key = change.key === undefined ? keyFor(route) : change.key;
  return gateway.rest.send(method, target, { key, body, ...(headers && { headers }) });
};

/** The same over a socket of its own, with headers that `fetch` keeps to itself. */
const callRaw = ({ url }: TestGateway, route: Route, headers: Record<string, string>, query = ""): Promise<Reply> => {
  const place = { method: route.method, path: targetOf(route.path, { path: IDS }) + query };
  const body = BODIES[route.operation] && JSON.stringify(BODIES[route.operation]);
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  return exchange(url, place, { authorization: `Bearer ${keyFor(route)}`, ...type, ...headers }, body);
};

/** Starts a turn that goes on until somebody ends it, and calls again while it runs. */
const beginStuck = async (gateway: TestGateway, fields: Record<string, unknown>): Promise<string> => {
  const { headers, events } = await gateway.rest.stream("chat.send", {
    body: { message: "hi", agent: "stuck", ...fields },
  });
  const first = await events.next();
  await events.return(undefined);
  return first.value?.data.turn_id ?? headers.get("x-request-id");
};

let sessions = 0;
const newSession = () => `provoked-${++sessions}`;

/** How each error comes about, on any operation that lists it. */
export const provocations: Partial<Record<ErrorName, Provoke>> = {
  "parse-error": async (route) => call(await usual(), route, { body: '{"message": "hi' }),
  "invalid-request": async (route) =>
    route.bodyLimit
      ? call(await usual(), route, { fields: { surprise: true } })
      : call(await usual(), route, { target: `${targetOf(route.path, { path: IDS })}?surprise=1` }),
  unauthenticated: async (route) => call(await usual(), route, { key: null }),
  forbidden: async (route) => {
    if (route.operation !== "ops.metrics") return call(await usual(), route, { key: SECRETS.adminKey });
    const tokens = [{ name: "reader", token: "a-token-that-reads-lists", permissions: ["agent.list"] }];
    const gateway = await gatewayFor("narrow token", { config: { gateway: { rpc: { auth: { tokens } } } } });
    return call(gateway, route, { key: "a-token-that-reads-lists" });
  },
  "tls-required": async (route) => call(await usual(), route, { headers: { "x-forwarded-for": "203.0.113.7" } }),
  "origin-not-allowed": async (route) => callRaw(await usual(), route, { origin: "https://pages.example" }),
  "method-not-allowed": async (route) => call(await usual(), route, { method: "PATCH", body: undefined }),
  "uri-too-long": async (route) => callRaw(await usual(), route, {}, `?${"a".repeat(9_000)}`),
  "headers-too-large": async (route) => callRaw(await usual(), route, { "x-padding": "a".repeat(20_000) }),
  "request-timeout": async (route) => {
    const gateway = await gatewayFor("impatient", { requestMs: 50 });
    if (route.bodyLimit) return callRaw(gateway, route, { "content-length": "1000" });
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(route).subarray(0, -2));
    return await connection.reply(route);
  },
  "too-large": async (route) => call(await usual(), route, { body: " ".repeat(1024 * 1024 + 1) }),
  "unsupported-media-type": async (route) => call(await usual(), route, { headers: { "content-type": "text/plain" } }),
  "rate-limited": async (route) => {
    const rateLimit = { maxRequests: 1, windowMs: 60_000 };
    const gateway = await gatewayFor("limited", { config: { gateway: { rest: { rateLimit } } } });
    await call(gateway, route);
    return call(gateway, route);
  },
  "store-unavailable": (route) => withFailingStore(new GatewayError("store-unavailable"), route),
  // The memory engine stores in one step, so nobody comes in between: an engine that waits for a disk or a database answers this.
  "idempotency-in-progress": (route) => withFailingStore(new GatewayError("idempotency-in-progress"), route),

  "turn-not-found": async (route) => {
    const gateway = await usual();
    if (!route.idempotent) return call(gateway, route);
    const [session_id, headers] = [newSession(), { "idempotency-key": newSession() }];
    await call(gateway, route, { headers, fields: { session_id } });
    await gateway.gateway.store.deleteSession(session_id, Date.now());
    return call(gateway, route, { headers, fields: { session_id } });
  },
  "key-not-found": async (route) => call(await usual(), route),
  "turn-ended": async (route) => {
    const gateway = await usual();
    const { json } = await gateway.rest.call("chat.send", { body: { message: "hi" } });
    return call(gateway, route, { path: { turn_id: String(json.turn_id) } });
  },

  "unknown-model": async (route) => call(await usual(), route, { fields: { agent: "choosy", model: "gigantic" } }),
  "agent-not-found": async (route) => call(await usual(), route, { fields: { agent: "mian" } }),
  "skill-not-found": async (route) =>
    call(await usual(), route, {
      fields: route.operation === "chat.send" ? { skill_ids: ["summarize-thread"] } : { skill_id: "summarize-thread" },
    }),
  "session-conflict": async (route) => {
    const [gateway, session_id] = [await usual(), newSession()];
    await call(gateway, route, { fields: { session_id, agent: "main" } });
    return call(gateway, route, { fields: { session_id, agent: "other" } });
  },
  "session-full": async (route) => {
    const config = { limits: { messagesPerSession: 2 } };
    const [gateway, session_id] = [await gatewayFor("short sessions", { config }), newSession()];
    await call(gateway, route, { fields: { session_id } });
    return call(gateway, route, { fields: { session_id } });
  },
  "session-busy": async (route) => {
    const [gateway, session_id] = [
      await gatewayFor("short queues", { config: { limits: { turnsPerSession: 1 } } }),
      newSession(),
    ];
    await beginStuck(gateway, { session_id });
    const queued = await gateway.rest.stream("chat.send", { body: { message: "hi", agent: "stuck", session_id } });
    await queued.events.return(undefined);
    return call(gateway, route, { fields: { agent: "stuck", session_id } });
  },
  "gateway-busy": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, one queue`, { config: { limits: { turns: 1 } } });
    const session_id = newSession();
    await beginStuck(gateway, { session_id });
    const queued = await gateway.rest.stream("chat.send", { body: { message: "hi", agent: "stuck", session_id } });
    await queued.events.return(undefined);
    return call(gateway, route);
  },
  "store-full": async (route) => {
    if (route.operation === "keys.create") return withFailingStore(new GatewayError("store-full"), route);
    const gateway = await gatewayFor("small store", { config: { limits: { storeBytes: 1 } } });
    await call(gateway, route);
    return call(gateway, route);
  },
  "idempotency-mismatch": async (route) => {
    const [gateway, headers] = [await usual(), { "idempotency-key": `mismatch-${route.operation}` }];
    await call(gateway, route, { headers });
    return call(gateway, route, { headers, fields: { user_id: "ada" } });
  },
  "turn-failed": async (route) => call(await usual(), route, { fields: { agent: "broken" } }),
  "turn-timeout": async (route) => call(await usual(), route, { fields: { agent: "late" } }),
  "turn-cancelled": async (route) => {
    const [gateway, session_id] = [await usual(), newSession()];
    const reply = call(gateway, route, { fields: { agent: "stuck", session_id } });
    await gateway.rest.call("turns.cancel", { path: { turn_id: await turnOf(gateway, session_id) } });
    return reply;
  },
  "agent-removed": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, an agent leaves`);
    const session_id = newSession();
    await beginStuck(gateway, { session_id });
    const waits = call(gateway, route, { fields: { agent: "stuck", session_id } });
    await turnOf(gateway, session_id, 2);
    const { stuck: _, ...left } = agents;
    await gateway.reload({ agents: left, skills, gateway: { defaultAgent: "main" } });
    return waits;
  },
  "shutting-down": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, the end`);
    await using connection = await openConnection(gateway.url);
    await beginStuck(gateway, { session_id: newSession() });
    const drained = gateway.gateway.drain("test", 1_000);
    const body = JSON.stringify(BODIES[route.operation]);
    const headers = { authorization: `Bearer ${keyFor(route)}`, "content-type": "application/json" };
    const place = { method: route.method, path: route.path };
    connection.write(requestText(place, headers, body));
    const reply = await connection.reply(place);
    await drained;
    return reply;
  },
};

/** The turn that is the n-th in a session, once it is there. */
const turnOf = async ({ gateway }: TestGateway, sessionId: string, nth = 1): Promise<string> => {
  for (;;) {
    const entries = await gateway.store.readEntries(sessionId, { after: 0, limit: 100 });
    const queued = entries.filter(({ name }) => name === "turn.queued")[nth - 1];
    if (queued) return queued.turnId;
    await new Promise(setImmediate);
  }
};
