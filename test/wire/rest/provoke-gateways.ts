import type { GatewayError } from "#kit/errors.ts";
import type { SharedStore } from "#store/shared-store.ts";
import type { Store } from "#store/store.ts";
import type { Route } from "#test/harness/contract.ts";
import { SECRETS, type SomeConfig, type TestGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";
import { type Reply, targetOf } from "#test/harness/rest.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { SHARED } from "#test/stores/shared-alone.ts";
import { agents, createGateways, failIfStoreFails, failingStore, whileStoreFails } from "#test/wire/call/provoked.ts";

/** Makes an operation return an error for a real reason. */
export type Provoke = (route: Route) => Promise<Reply>;

const skills = { dirs: [skillsFolder(SUMMARISE)] };
const yearly = { cron: "0 0 1 1 *", message: "hi" } as const;
const schedules = { brief: yearly, other: yearly };
const budgets = { ops: { per: "day", tokens: 1_000_000_000_000 } } as const;
export function configOf(config: SomeConfig): SomeConfig {
  const gateway = { defaultAgent: "main", trustedProxies: ["127.0.0.1"], openai: { enabled: true } };
  return { agents, skills, budgets, schedules, ...config, gateway: { ...gateway, ...config.gateway } };
}
/** They serve every operation. */
export const { gatewayFor, close: closeGateways } = createGateways(configOf);

export function usual() {
  return gatewayFor("usual");
}

/** Its rate limits fail like the other methods of the store. */
const shared: SharedStore = {
  ...SHARED,
  countRequest: async (...request) => {
    failIfStoreFails();
    return SHARED.countRequest(...request);
  },
  readRequests: async (...request) => {
    failIfStoreFails();
    return SHARED.readRequests(...request);
  },
};
export async function withFailingStore(error: GatewayError, route: Route): Promise<Reply> {
  const config = { gateway: { rest: { rateLimit: { maxRequests: 1_000, windowMs: 60_000 } } } };
  const wrapStore = (store: Store): Store => Object.assign(Object.create(failingStore(store)) as Store, { shared });
  const gateway = await gatewayFor("failing store", { config, wrapStore });
  return whileStoreFails(error, () => call(gateway, route));
}

export const BODIES: Partial<Record<string, Record<string, unknown>>> = {
  "chat.send": { message: "hi" },
  "skills.trigger": { skill_id: "summarise-thread" },
  "keys.create": { name: "support desk" },
  "keys.rotate": {},
  "budgets.grant": { tokens: 1 },
  "mappings.dryRun": { body: {} },
  "mappings.backtest": { mapping: { name: "new", match: {}, message: "New" } },
  "deliveries.replay": {},
  "completions.create": { model: "main", messages: [{ role: "user", content: "hi" }] },
};
/** Valid, and unknown. */
export const IDS = {
  turn_id: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
  key_id: "key_01M7WW41SHF3C7M5K2ZBW6QXRD",
  delivery_id: "dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
  event_id: "evt_01M7YN1B2AZD4Q9RXC5HT7N3MA",
  notification_id: "ntf_01M7YN0XEMM1B7E5S8YF3GKP2N.ops",
  name: "ops",
  agent_name: "main",
  schedule_name: "brief",
  skill_id: "summarise-thread",
  model: "main",
};

export function keyFor({ scope, operation }: Route): string {
  if (operation === "ops.metrics") return SECRETS.rpcToken;
  return scope === "console" ? SECRETS.consoleToken : scope === "admin" ? SECRETS.adminKey : SECRETS.key;
}

type Change = {
  method?: string;
  path?: Record<string, string>;
  target?: string;
  headers?: Record<string, string>;
  key?: string | null;
  /** Fields in addition to the usual ones. */
  fields?: Record<string, unknown>;
  body?: unknown;
};

/** A code is valid for one call, and only for the method that accepts it. */
function goodFor({ gateway }: TestGateway, route: Route, method: string): string {
  return route.operation === "codes.redeem" && method === route.method
    ? gateway.signInCode(SECRETS.consoleToken)
    : keyFor(route);
}

/** Makes the usual call of an operation with this change. */
export async function call(gateway: TestGateway, route: Route, change: Change = {}): Promise<Reply> {
  const { method = route.method, path = IDS, target = targetOf(route.path, { path }), headers, fields } = change;
  const usualBody = BODIES[route.operation];
  const body = "body" in change ? change.body : usualBody && { ...usualBody, ...fields };
  const key = change.key === undefined ? goodFor(gateway, route, method) : change.key;
  return gateway.rest.send(method, target, { key, body, ...(headers && { headers }) });
}

/** The same over a separate socket, with headers that `fetch` does not send. */
export async function callRaw(
  gateway: TestGateway,
  route: Route,
  headers: Record<string, string>,
  query = "",
): Promise<Reply> {
  const place = { method: route.method, path: targetOf(route.path, { path: IDS }) + query };
  const body = BODIES[route.operation] && JSON.stringify(BODIES[route.operation]);
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  return exchange(
    gateway.url,
    place,
    { authorization: `Bearer ${goodFor(gateway, route, route.method)}`, ...type, ...headers },
    body,
  );
}

/** Starts a turn that runs until it is stopped, and calls again while it runs. */
export async function beginStuck(gateway: TestGateway, fields: Record<string, unknown>): Promise<string> {
  const { headers, events } = await gateway.rest.stream("chat.send", {
    body: { message: "hi", agent: "stuck", ...fields },
  });
  const first = await events.next();
  await events.return(undefined);
  return first.value?.data.turn_id ?? headers.get("x-request-id");
}
