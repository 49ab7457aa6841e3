// Doors are made to answer with each of their errors for real. This is what they share: agents, gateways, and a store that fails.
import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import type { Store } from "#store/store.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { type SomeConfig, type Start, startGateway, type TestGateway } from "#test/harness/gateway.ts";

const backends: Record<string, Backend> = {
  stuck: { ...createPuppet().backend, kind: "stuck" },
  choosy: { ...createPuppet(["fast", "deep"]).backend, kind: "choosy" },
  /** It has failed so often that it is left alone. */
  resting: { ...createPuppet().backend, kind: "resting", restMs: () => 4_200 },
  /** Its turns end badly, and a summary never comes. */
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

/** Gateways by their names, each started when a case first needs it. */
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
 * A store that fails when `whileStoreFails` says so, as an engine that lost its disk or its database does. What an
 * engine answers from memory is answered even then, unless told.
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

/** The turn that is the n-th in a session, once it is there. */
export async function turnOf({ gateway }: TestGateway, sessionId: string, nth = 1): Promise<string> {
  for (;;) {
    const entries = await gateway.store.readEntries(sessionId, { after: 0, limit: 100 });
    const queued = entries.filter(({ name }) => name === "turn.queued")[nth - 1];
    if (queued) return queued.turnId;
    await new Promise(setImmediate);
  }
}
