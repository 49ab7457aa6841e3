import type { ErrorName } from "#generated/errors.ts";
import type { GatewayError } from "#kit/errors.ts";
import type { Store } from "#store/store.ts";
import type { Route } from "#test/harness/contract.ts";
import type { SomeConfig, Start, TestGateway } from "#test/harness/gateway.ts";
import { type HookClient, type HookSending, hookTransports } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { sweepOrder } from "#test/stores/world.ts";
import { agents, commonProvocations, createGateways, failingStore, whileStoreFails } from "#test/wire/call/provoked.ts";

const KINDS = {
  usual: {},
  session: { session: "webhook:one" },
  conflict: { session: "webhook:taken", agent: "other" },
  stuck: { session: "webhook:stuck", agent: "stuck" },
  choosy: { agent: "choosy", model: "gigantic" },
  leaving: { agent: "leaving" },
} as const;
type Kind = keyof typeof KINDS;

const mappings = Object.fromEntries(
  Object.entries(KINDS).map(([kind, turn]) => [kind, { match: { "body.kind": kind }, message: "hi", ...turn }]),
);

type Change = HookSending & {
  kind?: Kind;
  /** After the path. */
  query?: string;
  name?: string;
  fields?: Record<string, unknown>;
  body?: unknown;
};

/** Makes each webhook return each of its errors for a real reason, over one kind of connection. */
export function createProvocations(way: keyof typeof hookTransports) {
  const { open, config: ofWay } = hookTransports[way] as (typeof hookTransports)[string];
  const wholeOf = (config: SomeConfig): SomeConfig => ({
    agents,
    ...config,
    gateway: { defaultAgent: "main", trustedProxies: ["127.0.0.1"], ...ofWay?.gateway },
    webhooks: { mappings, ...config.webhooks },
  });
  const gateways = createGateways(wholeOf);
  const clients = new Map<TestGateway, Promise<HookClient & AsyncDisposable>>();
  const clientOf = (gateway: TestGateway) => {
    const opened = clients.get(gateway) ?? open(gateway);
    clients.set(gateway, opened);
    return opened;
  };
  const gatewayFor = async (name: string, start?: Start) => {
    const gateway = await gateways.gatewayFor(name, start);
    return { gateway, client: await clientOf(gateway) };
  };
  /** Sends the usual request of an operation with this change. */
  const call = (client: HookClient, route: Route, change: Change = {}): Promise<Reply> => {
    const { kind = "usual", query = "", name = kind, fields, ...sending } = change;
    const usual =
      route.operation === "hooks.wake"
        ? { text: "hi" }
        : route.operation === "hooks.agent"
          ? { message: "hi", ...KINDS[kind] }
          : { kind };
    const below = route.path.slice("/hooks".length).replace("{name}", name) + query;
    return client.send(below, "body" in change ? change.body : { ...usual, ...fields }, sending);
  };
  const usually = async (route: Route, change?: Change) => call((await gatewayFor("usual")).client, route, change);
  const withConfig = async (name: string, config: SomeConfig) => (await gatewayFor(name, { config })).client;

  let keys = 0;
  const freshKey = () => ({ "idempotency-key": `provoked-${++keys}` });

  const withFailingStore = async (error: GatewayError, route: Route): Promise<Reply> => {
    const { client } = await gatewayFor("failing store", { wrapStore: failingStore });
    return whileStoreFails(error, () => call(client, route));
  };
  /** Its mapping is chosen, and then a reload removes its agent. */
  const whileItsAgentLeaves = async (route: Route): Promise<Reply> => {
    let leave = async () => {};
    const wrapStore = (store: Store): Store => ({
      ...store,
      findReplay: async (...query) => {
        await leave();
        return store.findReplay(...query);
      },
    });
    const { gateway, client } = await gatewayFor(`${route.operation}, an agent leaves`, { wrapStore });
    const { leaving: _, ...agentsLeft } = agents;
    const { leaving: __, ...mappingsLeft } = mappings;
    leave = () => gateway.reload(wholeOf({ agents: agentsLeft, webhooks: { mappings: mappingsLeft } }));
    return call(client, route, { kind: "leaving", headers: freshKey() });
  };

  /** Fills the queue of a session whose turn never ends. */
  const fillQueue = async (client: HookClient): Promise<void> => {
    for (let n = 0; n < 2; n++) await client.agent({ message: "hi", ...KINDS.stuck });
  };

  const common = commonProvocations<Route, Reply>({
    nameOf: ({ operation }) => operation,
    gatewayFor: async (_, name, start) => (await gatewayFor(name, start)).gateway,
    async call(route, gateway, { agent, session, key, isOther, token, headers }) {
      const kind: Kind = agent === "stuck" || agent === "choosy" ? agent : session === undefined ? "usual" : "session";
      const all = { ...headers, ...(key !== undefined && { "idempotency-key": key }) };
      const change = { kind, headers: all, ...(token === null && { token }), ...(isOther && otherwise(route)) };
      return call(await clientOf(gateway), route, change);
    },
    start: async (_, gateway) => (await clientOf(gateway)).agent({ message: "hi", ...KINDS.stuck }),
    withFailingStore: (route, error) => withFailingStore(error, route),
    sessionIdOf: () => KINDS.session.session,
    limited: { webhooks: { rateLimit: { maxRequests: 1 } } },
    configOf: wholeOf,
  });

  const provocations: Partial<Record<ErrorName, (route: Route) => Promise<Reply>>> = {
    ...common,
    "parse-error": (route) => usually(route, { body: '{"text":"hi' }),
    "invalid-request": (route) => usually(route, isMapped(route) ? { body: "7" } : { fields: { surprise: 1 } }),
    "address-not-allowed": async (route) =>
      call(await withConfig("closed", { webhooks: { allowedIps: ["203.0.113.0/24"] } }), route),
    "origin-not-allowed": (route) => usually(route, { headers: { origin: "https://pages.example" } }),
    "agent-not-found": (route) =>
      isMapped(route) ? whileItsAgentLeaves(route) : usually(route, { fields: { agent: "mian" } }),
    "mapping-not-found": (route) => usually(route, { name: "unusual", fields: { kind: "unusual" } }),
    "method-not-allowed": (route) => usually(route, { method: "PATCH" }),
    "uri-too-long": (route) => usually(route, { query: `?${"a".repeat(9_000)}` }),
    "headers-too-large": (route) => usually(route, { headers: { "x-padding": "a".repeat(20_000) } }),
    "too-large": (route) => usually(route, { body: " ".repeat(256 * 1024 + 1) }),
    "unsupported-media-type": (route) => usually(route, { headers: { "content-type": "application/xml" } }),
    "heartbeat-off": (route) => usually(route, { fields: { agent: "quiet" } }),
    "request-timeout": async (route) => {
      const { client } = await gatewayFor("impatient", { requestMs: 50 });
      return call(client, route, { headers: { "content-length": "1000" } });
    },
    "turn-not-found": async (route) => {
      const { gateway } = await gatewayFor("usual");
      const headers = freshKey();
      const { json } = await usually(route, { headers });
      await gateway.gateway.store.deleteSession(String(json.sessionId), Date.now());
      return usually(route, { headers });
    },
    "event-not-found": async (route) => {
      const { gateway } = await gatewayFor("usual");
      const headers = freshKey();
      const { json } = await usually(route, { headers, fields: { mode: "now" } });
      await forget(gateway.gateway.store, String(json.eventId));
      return usually(route, { headers, fields: { mode: "now" } });
    },
    "session-conflict": async (route) => {
      const { client } = await gatewayFor("usual");
      await client.agent({ message: "hi", session: "webhook:taken", agent: "main" });
      return call(client, route, { kind: "conflict" });
    },
    "gateway-busy": async (route) => {
      const limits = { turns: 1, events: 1 };
      const client = await withConfig("one queue", { limits });
      if (route.operation === "hooks.wake") await client.wake({ text: "hi" });
      else await fillQueue(client);
      return call(client, route);
    },
    "share-busy": async (route) => {
      if (route.operation !== "hooks.wake") return common["share-busy"](route);
      const client = await withConfig("a share of the events", { limits: { events: 2, share: 0.5 } });
      await client.wake({ text: "hi" });
      return call(client, route);
    },
    "shutting-down": async (route) => {
      const { gateway, client } = await gatewayFor(`${route.operation}, the end`);
      await client.agent({ message: "hi", ...KINDS.stuck });
      // The test that closes the gateways waits for its end.
      void gateway.gateway.drain("test", 1_000);
      return call(client, route);
    },
  };

  return {
    provocations,
    async close(): Promise<void> {
      for (const client of clients.values()) await (await client)[Symbol.asyncDispose]();
      await gateways.close();
    },
  };
}

function isMapped({ operation }: Route): boolean {
  return operation.startsWith("hooks.mapped");
}

/** The same request with another text. */
function otherwise({ operation }: Route): Change {
  if (operation === "hooks.wake") return { fields: { text: "ho" } };
  return { fields: operation === "hooks.agent" ? { message: "ho" } : { more: true } };
}

/** Deletes an event by age as soon as it was handled. */
async function forget(store: Store, eventId: string): Promise<void> {
  while ((await store.getEvent(eventId))?.status === "queued") await new Promise(setImmediate);
  const now = Date.now();
  while (await store.sweep(sweepOrder(now, { eventsBefore: now + 1_000 })));
}
