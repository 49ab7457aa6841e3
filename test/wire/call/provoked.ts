// Every surface returns each of its errors for a real reason. These are the common parts: agents, gateways, and a failing store.

import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import type { ErrorName } from "#generated/errors.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Store } from "#store/store.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { type SomeConfig, type Start, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { endTurn, used } from "#test/stores/world.ts";

const backends: Record<string, Backend> = {
  stuck: { ...createPuppet().backend, kind: "stuck" },
  choosy: { ...createPuppet(["fast", "deep"]).backend, kind: "choosy" },
  /** It has failed so often that it gets no requests. */
  resting: { ...createPuppet().backend, kind: "resting", restMs: () => 4_200 },
  /** Its turns fail, and a summary never ends. */
  speechless: {
    ...createEchoBackend({ fail: "The backend is away." }),
    summarise: () => Promise.reject(new Error("it lost its words")),
  },
  endless: { ...createEchoBackend({}), summarise: () => new Promise<never>(() => {}) },
};

export const agents = {
  main: { backend: "echo" },
  other: { backend: "echo" },
  quiet: { backend: "echo", heartbeat: { every: "off" } },
  broken: { backend: "echo", echo: { fail: "The backend answered 503 three times." } },
  late: { backend: "echo", deadline: "1ms", echo: { delayMs: 60_000 } },
  stuck: { backend: "echo" },
  choosy: { backend: "echo" },
  resting: { backend: "echo" },
  speechless: { backend: "echo" },
  endless: { backend: "echo", deadline: "20ms" },
  leaving: { backend: "echo" },
} as const;

/** Gateways by name, each started when a case first needs it. */
export function createGateways(configOf: (config: SomeConfig) => SomeConfig) {
  const started = new Map<string, Promise<TestGateway>>();
  return {
    gatewayFor(name: string, { config = {}, ...options }: Start = {}): Promise<TestGateway> {
      const makeBackend: Start["makeBackend"] = (agent, { echo }) => backends[agent] ?? createEchoBackend(echo);
      const gateway = started.get(name) ?? startGateway({ makeBackend, config: configOf(config), ...options });
      started.set(name, gateway);
      return gateway;
    },
    async close(): Promise<void> {
      for (const gateway of started.values()) await (await gateway)[Symbol.asyncDispose]();
      started.clear();
    },
  };
}

let storeError: Error | undefined;
/**
 * A store that fails when `whileStoreFails` says so, like an engine that lost its disk or its database. Answers from an engine's memory still work,
 * unless told otherwise.
 */
export function failingStore(store: Store, { memoryToo = false } = {}): Store {
  return new Proxy(store, {
    get: (own, name) => {
      const method = own[name as keyof Store];
      if (typeof method !== "function" || name === "watch" || name === Symbol.asyncDispose) return method;
      const call = (...args: never[]) => {
        failIfStoreFails();
        return (method as (...args: never[]) => unknown).apply(own, args);
      };
      if (name === "stats" || name === "agentCounts") return memoryToo ? call : method;
      return async (...args: never[]) => await call(...args);
    },
  });
}
export async function whileStoreFails<T>(error: Error, act: () => Promise<T>): Promise<T> {
  storeError = error;
  try {
    return await act();
  } finally {
    storeError = undefined;
  }
}
export function failIfStoreFails(): void {
  if (storeError) throw storeError;
}

let sessions = 0;
export function newSession(): string {
  return `provoked-${++sessions}`;
}

/** The nth turn of a session, once it exists. */
export async function turnOf({ gateway }: TestGateway, sessionId: string, nth = 1): Promise<string> {
  for (;;) {
    const entries = await gateway.store.readEntries(sessionId, { after: 0, limit: 100 });
    const queued = entries.filter(({ name }) => name === "turn.queued")[nth - 1];
    if (queued) return queued.turnId;
    await new Promise(setImmediate);
  }
}

export const smallBudget: SomeConfig = { budgets: { daily: { per: "day", tokens: 1 } } };

/** Runs a turn, which spends the small budget, unless it is already spent. */
export async function spend({ gateway: { store } }: TestGateway): Promise<void> {
  await endTurn(store, Date.now(), { session: newSession() }, { usage: used(1, 1) }).catch(() => {});
}

/** A call, independent of the surface: the usual call with these changes. */
export type CallOptions = {
  agent?: string;
  session?: string;
  model?: string;
  /** An idempotency key. */
  key?: string;
  /** Makes another request with the same key. */
  isOther?: boolean;
  token?: null;
  headers?: Record<string, string>;
};
/** How a surface calls `Of`, one of its operations. */
type Surface<Of, Answer> = {
  nameOf(of: Of): string;
  gatewayFor(of: Of, name: string, start?: Start): Promise<TestGateway>;
  call(of: Of, gateway: TestGateway, ask: CallOptions): Promise<Answer>;
  /** Starts a turn, and does not wait for it. */
  start(of: Of, gateway: TestGateway, turn: { agent: string; sessionId: string }): Promise<unknown>;
  withFailingStore(of: Of, error: GatewayError): Promise<Answer>;
  /** The session of a call. */
  sessionIdOf(of: Of, agent: string, session: string): string;
  /** Allows only one request for each caller. */
  limited: SomeConfig;
  configOf(config: SomeConfig): SomeConfig;
};

/** Causes the errors that all surfaces have. */
export function commonProvocations<Of, Answer>(surface: Surface<Of, Answer>) {
  const { call, gatewayFor, nameOf, sessionIdOf, start, withFailingStore } = surface;
  const usual = (of: Of) => gatewayFor(of, "usual");
  const ask = async (of: Of, asked: CallOptions) => call(of, await usual(of), asked);
  const twice = async (of: Of, name: string, config: SomeConfig, asked: CallOptions = {}) => {
    const gateway = await gatewayFor(of, name, { config });
    await call(of, gateway, asked);
    return call(of, gateway, asked);
  };
  /** Starts a turn that runs until it is stopped, and queues another turn in its session. */
  const fillQueue = async (of: Of, gateway: TestGateway) => {
    const session = newSession();
    const turn = { agent: "stuck", sessionId: sessionIdOf(of, "stuck", session) };
    for (const _ of [1, 2]) await start(of, gateway, turn);
    return session;
  };
  return {
    unauthenticated: (of: Of) => ask(of, { token: null }),
    "tls-required": (of: Of) => ask(of, { headers: { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "http" } }),
    "rate-limited": (of: Of) => twice(of, "limited", surface.limited),
    "store-unavailable": (of: Of) => withFailingStore(of, new GatewayError("store-unavailable")),
    // The memory engine stores in one step, so this error cannot occur. Engines that wait for a disk or a database return it.
    "idempotency-in-progress": (of: Of) => withFailingStore(of, new GatewayError("idempotency-in-progress")),
    "idempotency-mismatch": async (of: Of) => {
      const key = newSession();
      await ask(of, { key });
      return ask(of, { key, isOther: true });
    },
    "turn-not-found": async (of: Of) => {
      const [gateway, session] = [await usual(of), newSession()];
      await call(of, gateway, { session, key: session });
      await gateway.gateway.store.deleteSession(sessionIdOf(of, "main", session), Date.now());
      return call(of, gateway, { session, key: session });
    },
    "unknown-model": (of: Of) => ask(of, { agent: "choosy", model: "gigantic" }),
    "agent-not-found": (of: Of) => ask(of, { agent: "mian" }),
    "agent-unavailable": (of: Of) => ask(of, { agent: "resting" }),
    "session-conflict": async (of: Of) => {
      const [gateway, session] = [await usual(of), newSession()];
      await start(of, gateway, { agent: "other", sessionId: sessionIdOf(of, "main", session) });
      return call(of, gateway, { agent: "main", session });
    },
    "session-full": (of: Of) =>
      twice(of, "short sessions", { limits: { messagesPerSession: 2 } }, { session: newSession() }),
    "budget-exceeded": async (of: Of) => {
      const gateway = await gatewayFor(of, "small budget", { config: smallBudget });
      await spend(gateway);
      return call(of, gateway, {});
    },
    "session-busy": async (of: Of) => {
      const gateway = await gatewayFor(of, "short queues", { config: { limits: { turnsPerSession: 1 } } });
      return call(of, gateway, { agent: "stuck", session: await fillQueue(of, gateway) });
    },
    "gateway-busy": async (of: Of) => {
      const gateway = await gatewayFor(of, `${nameOf(of)}, one queue`, { config: { limits: { turns: 1 } } });
      await fillQueue(of, gateway);
      return call(of, gateway, {});
    },
    "share-busy": async (of: Of) => {
      const name = `${nameOf(of)}, a share of the queue`;
      const gateway = await gatewayFor(of, name, { config: { limits: { turns: 2, share: 0.5 } } });
      await fillQueue(of, gateway);
      return call(of, gateway, {});
    },
    "share-full": (of: Of) => twice(of, "small shares", { limits: { storeBytes: "1MiB", share: 0.0003 } }),
    "store-full": (of: Of) => twice(of, "small store", { limits: { storeBytes: 1 } }),
    "turn-failed": (of: Of) => ask(of, { agent: "broken" }),
    "turn-timeout": (of: Of) => ask(of, { agent: "late" }),
    "turn-cancelled": async (of: Of) => {
      const [gateway, session] = [await usual(of), newSession()];
      const answer = call(of, gateway, { agent: "stuck", session });
      const turnId = await turnOf(gateway, sessionIdOf(of, "stuck", session));
      await gateway.gateway.store.cancelTurn(turnId, Date.now());
      return answer;
    },
    "agent-removed": async (of: Of) => {
      const [gateway, session] = [await gatewayFor(of, `${nameOf(of)}, an agent leaves`), newSession()];
      const sessionId = sessionIdOf(of, "stuck", session);
      await start(of, gateway, { agent: "stuck", sessionId });
      const answer = call(of, gateway, { agent: "stuck", session });
      await turnOf(gateway, sessionId, 2);
      const { stuck: _, ...left } = agents;
      await gateway.reload(surface.configOf({ agents: left }));
      return answer;
    },
  } satisfies Partial<Record<ErrorName, (of: Of) => Promise<Answer>>>;
}
