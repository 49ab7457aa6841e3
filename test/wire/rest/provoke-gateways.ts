import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import type { GatewayError } from "#kit/errors.ts";
import type { SharedStore } from "#store/shared-store.ts";
import type { Store } from "#store/store.ts";
import { createPuppet } from "#test/harness/backends.ts";
import type { Route } from "#test/harness/contract.ts";
import { SECRETS, type Start, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";
import { type Reply, targetOf } from "#test/harness/rest.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";

/** Makes an operation answer with an error, for real. */
export type Provoke = (route: Route) => Promise<Reply>;

export const skills = { dirs: [skillsFolder(SUMMARISE)] };
const stuck: Backend = { ...createPuppet().backend, kind: "stuck" };
const choosy: Backend = { ...createPuppet(["fast", "deep"]).backend, kind: "choosy" };
/** It has failed so often that it is left alone. */
const resting: Backend = { ...createPuppet().backend, kind: "resting", restMs: () => 4_200 };
const backends: Record<string, Backend> = { stuck, choosy, resting };

export const agents = {
  main: { backend: "echo" },
  other: { backend: "echo" },
  broken: { backend: "echo", echo: { fail: "The backend answered 503 three times." } },
  late: { backend: "echo", deadline: "1ms", echo: { delayMs: 60_000 } },
  stuck: { backend: "echo" },
  resting: { backend: "echo" },
  choosy: { backend: "echo" },
} as const;

/** Gateways that are started when a case needs one, and serve every operation. */
const started = new Map<string, Promise<TestGateway>>();
export const gatewayFor = (name: string, { config, ...options }: Start = {}): Promise<TestGateway> => {
  const known = started.get(name);
  if (known) return known;
  const gateway = startGateway({
    makeBackend: (agent, settings) => backends[agent] ?? createEchoBackend(settings.echo),
    config: {
      agents,
      skills,
      ...config,
      gateway: { defaultAgent: "main", trustedProxies: ["127.0.0.1"], openai: { enabled: true }, ...config?.gateway },
    },
    ...options,
  });
  started.set(name, gateway);
  return gateway;
};
export const usual = () => gatewayFor("usual");

export const closeGateways = async (): Promise<void> => {
  for (const gateway of started.values()) await (await gateway)[Symbol.asyncDispose]();
  started.clear();
};

/** A store that fails when told to, as an engine that lost its disk or its database does. */
let storeError: GatewayError | undefined;
/** What is answered from memory, or is no question. */
const NO_CALLS: ReadonlySet<string | symbol> = new Set(["watch", "stats", "agentCounts", Symbol.asyncDispose]);
/** It counts requests for several gateways, too, of which there is one. */
const shared: SharedStore = {
  countRequest: async () => {
    if (storeError) throw storeError;
    return { left: 1 };
  },
  readRequests: async (keys) => {
    if (storeError) throw storeError;
    return keys.map(() => ({ left: 1, wholeInMs: undefined }));
  },
  gateways: () => 1,
  haveAgents: async () => {},
  goneAgents: async () => [],
  askTexts: async () => {},
  putTexts: async () => {},
  readTexts: async () => [],
  dropTexts: async () => {},
};
const failingStore = (store: Store): Store =>
  new Proxy(store, {
    get: (own, name) => {
      if (name === "shared") return shared;
      const method = own[name as keyof Store];
      if (typeof method !== "function" || NO_CALLS.has(name)) return method;
      return async (...args: never[]) => {
        if (storeError) throw storeError;
        return await (method as (...args: never[]) => unknown).apply(own, args);
      };
    },
  });

export const withFailingStore = async (error: GatewayError, route: Route): Promise<Reply> => {
  const config = { gateway: { rest: { rateLimit: { maxRequests: 1_000, windowMs: 60_000 } } } };
  const gateway = await gatewayFor("failing store", { config, wrapStore: failingStore });
  storeError = error;
  try {
    return await call(gateway, route);
  } finally {
    storeError = undefined;
  }
};

export const BODIES: Partial<Record<string, Record<string, unknown>>> = {
  "chat.send": { message: "hi" },
  "skills.trigger": { skill_id: "summarise-thread" },
  "keys.create": { name: "support desk" },
  "keys.rotate": {},
  "mappings.dryRun": { body: {} },
  "deliveries.replay": {},
  "completions.create": { model: "main", messages: [{ role: "user", content: "hi" }] },
};
/** Well formed, and of nobody. */
export const IDS = {
  turn_id: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
  key_id: "key_01M7WW41SHF3C7M5K2ZBW6QXRD",
  delivery_id: "dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
  event_id: "evt_01M7YN1B2AZD4Q9RXC5HT7N3MA",
  agent_name: "main",
  skill_id: "summarise-thread",
  model: "main",
};

export const keyFor = ({ scope, operation }: Route): string => {
  if (operation === "ops.metrics") return SECRETS.rpcToken;
  return scope === "console" ? SECRETS.consoleToken : scope === "admin" ? SECRETS.adminKey : SECRETS.key;
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
export const call = (gateway: TestGateway, route: Route, change: Change = {}): Promise<Reply> => {
  const { method = route.method, path = IDS, target = targetOf(route.path, { path }), headers, fields } = change;
  const usualBody = BODIES[route.operation];
  const body = "body" in change ? change.body : usualBody && { ...usualBody, ...fields };
  const key = change.key === undefined ? keyFor(route) : change.key;
  return gateway.rest.send(method, target, { key, body, ...(headers && { headers }) });
};

/** The same over a socket of its own, with headers that `fetch` keeps to itself. */
export const callRaw = (
  { url }: TestGateway,
  route: Route,
  headers: Record<string, string>,
  query = "",
): Promise<Reply> => {
  const place = { method: route.method, path: targetOf(route.path, { path: IDS }) + query };
  const body = BODIES[route.operation] && JSON.stringify(BODIES[route.operation]);
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  return exchange(url, place, { authorization: `Bearer ${keyFor(route)}`, ...type, ...headers }, body);
};

/** Starts a turn that goes on until somebody ends it, and calls again while it runs. */
export const beginStuck = async (gateway: TestGateway, fields: Record<string, unknown>): Promise<string> => {
  const { headers, events } = await gateway.rest.stream("chat.send", {
    body: { message: "hi", agent: "stuck", ...fields },
  });
  const first = await events.next();
  await events.return(undefined);
  return first.value?.data.turn_id ?? headers.get("x-request-id");
};

let sessions = 0;
export const newSession = () => `provoked-${++sessions}`;

/** The turn that is the n-th in a session, once it is there. */
export const turnOf = async ({ gateway }: TestGateway, sessionId: string, nth = 1): Promise<string> => {
  for (;;) {
    const entries = await gateway.store.readEntries(sessionId, { after: 0, limit: 100 });
    const queued = entries.filter(({ name }) => name === "turn.queued")[nth - 1];
    if (queued) return queued.turnId;
    await new Promise(setImmediate);
  }
};
