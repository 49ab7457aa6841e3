import type { ErrorName } from "#generated/errors.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Route } from "#test/harness/contract.ts";
import { SECRETS, type TestGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { type Reply, targetOf } from "#test/harness/rest.ts";
import { agents, newSession, turnOf } from "#test/wire/call/provoked.ts";
import {
  BODIES,
  beginStuck,
  call,
  callRaw,
  gatewayFor,
  IDS,
  keyFor,
  type Provoke,
  skills,
  usual,
  withFailingStore,
} from "./provoke-gateways.ts";

type Setup = { agent?: string; session?: string };
/** The fields for an agent and a session, by the names that the operation has for them. */
function fieldsFor({ surface }: Route, { agent, session }: Setup) {
  return surface === "openai" ? { ...(agent && { model: agent }), user: session } : { agent, session_id: session };
}
/** The session that a request for them comes to. */
function sessionIdOf({ surface }: Route, agent: string, session: string): string {
  return surface === "openai" ? `agent:${agent}:openai:${session}` : session;
}
/** Has a turn of the session go on, and one wait behind it. */
async function queueStuck(gateway: TestGateway, session_id: string): Promise<void> {
  await beginStuck(gateway, { session_id });
  const queued = await gateway.rest.stream("chat.send", { body: { message: "hi", agent: "stuck", session_id } });
  await queued.events.return(undefined);
}

async function callTwoHosts({ url }: TestGateway, route: Route): Promise<Reply> {
  await using connection = await openConnection(url);
  connection.write(requestText(route, { host: "127.0.0.1\r\nHost: 127.0.0.1" }));
  return await connection.reply(route);
}

/** How each error comes about, on any operation that lists it. */
export const provocations: Partial<Record<ErrorName, Provoke>> = {
  "parse-error": async (route) => call(await usual(), route, { body: '{"message": "hi' }),
  "invalid-request": async (route) => {
    if (route.surface === "public") return callTwoHosts(await usual(), route);
    return route.bodyLimit
      ? call(await usual(), route, { fields: { surprise: true } })
      : call(await usual(), route, { target: `${targetOf(route.path, { path: IDS })}?surprise=1` });
  },
  unauthenticated: async (route) => call(await usual(), route, { key: null }),
  "key-expired": async (route) => {
    const keys = [{ name: "support desk", key: "a-key-that-was-good-once", expiresAt: "2020-01-31" }];
    const gateway = await gatewayFor("expired key", { config: { gateway: { rest: { auth: { keys } } } } });
    return call(gateway, route, { key: "a-key-that-was-good-once" });
  },
  "key-replaced": async (route) => {
    const gateway = await usual();
    const { json } = await gateway.console.call("keys.create", { body: { name: "support desk" } });
    const path = { key_id: String(json.key_id) };
    await call(gateway, route, { path });
    return call(gateway, route, { path });
  },
  forbidden: async (route) => {
    const lesser = route.scope === "admin" ? SECRETS.key : SECRETS.adminKey;
    if (route.operation !== "ops.metrics") return call(await usual(), route, { key: lesser });
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
  // An optional body that says nothing may have any type.
  "unsupported-media-type": async (route) =>
    call(await usual(), route, { fields: { more: true }, headers: { "content-type": "text/plain" } }),
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
    const [gateway, session] = [await usual(), newSession()];
    if (!route.idempotent) return call(gateway, route);
    const again = { headers: { "idempotency-key": session }, fields: fieldsFor(route, { session }) };
    await call(gateway, route, again);
    await gateway.gateway.store.deleteSession(sessionIdOf(route, "main", session), Date.now());
    return call(gateway, route, again);
  },
  "key-not-found": async (route) => call(await usual(), route),
  "not-found": async (route) =>
    call(await gatewayFor("no console", { config: { gateway: { console: { enabled: false } } } }), route),
  "turn-ended": async (route) => {
    const gateway = await usual();
    const { json } = await gateway.rest.call("chat.send", { body: { message: "hi" } });
    return call(gateway, route, { path: { turn_id: String(json.turn_id) } });
  },

  "unknown-model": async (route) => call(await usual(), route, { fields: { agent: "choosy", model: "gigantic" } }),
  "agent-not-found": async (route) => call(await usual(), route, { fields: { agent: "mian" } }),
  "skill-not-found": async (route) =>
    call(await usual(), route, {
      path: { skill_id: "summarize-thread" },
      fields: route.operation === "chat.send" ? { skill_ids: ["summarize-thread"] } : { skill_id: "summarize-thread" },
    }),
  "session-conflict": async (route) => {
    const [gateway, session] = [await usual(), newSession()];
    const session_id = sessionIdOf(route, "main", session);
    await gateway.rest.call("chat.send", { body: { message: "hi", agent: "other", session_id } });
    return call(gateway, route, { fields: fieldsFor(route, { agent: "main", session }) });
  },
  "session-full": async (route) => {
    const config = { limits: { messagesPerSession: 2 } };
    const fields = fieldsFor(route, { session: newSession() });
    const gateway = await gatewayFor("short sessions", { config });
    await call(gateway, route, { fields });
    return call(gateway, route, { fields });
  },
  "session-busy": async (route) => {
    const gateway = await gatewayFor("short queues", { config: { limits: { turnsPerSession: 1 } } });
    const session = newSession();
    await queueStuck(gateway, sessionIdOf(route, "stuck", session));
    return call(gateway, route, { fields: fieldsFor(route, { agent: "stuck", session }) });
  },
  "gateway-busy": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, one queue`, { config: { limits: { turns: 1 } } });
    await queueStuck(gateway, newSession());
    return call(gateway, route);
  },
  "agent-unavailable": async (route) => call(await usual(), route, { fields: fieldsFor(route, { agent: "resting" }) }),
  "store-full": async (route) => {
    // A call that starts no work is refused by a full disk alone.
    if (!route.idempotent) return withFailingStore(new GatewayError("store-full"), route);
    const gateway = await gatewayFor("small store", { config: { limits: { storeBytes: 1 } } });
    await call(gateway, route);
    return call(gateway, route);
  },
  "idempotency-mismatch": async (route) => {
    const [gateway, headers] = [await usual(), { "idempotency-key": `mismatch-${route.operation}` }];
    await call(gateway, route, { headers });
    return call(gateway, route, { headers, fields: { user_id: "ada" } });
  },
  "turn-failed": async (route) => call(await usual(), route, { fields: fieldsFor(route, { agent: "broken" }) }),
  "turn-timeout": async (route) => call(await usual(), route, { fields: fieldsFor(route, { agent: "late" }) }),
  "turn-cancelled": async (route) => {
    const [gateway, session] = [await usual(), newSession()];
    const reply = call(gateway, route, { fields: fieldsFor(route, { agent: "stuck", session }) });
    const turn_id = await turnOf(gateway, sessionIdOf(route, "stuck", session));
    await gateway.rest.call("turns.cancel", { path: { turn_id } });
    return reply;
  },
  "agent-removed": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, an agent leaves`);
    const session = newSession();
    const session_id = sessionIdOf(route, "stuck", session);
    await beginStuck(gateway, { session_id });
    const waits = call(gateway, route, { fields: fieldsFor(route, { agent: "stuck", session }) });
    await turnOf(gateway, session_id, 2);
    const { stuck: _, ...left } = agents;
    await gateway.reload({ agents: left, skills, gateway: { defaultAgent: "main", openai: { enabled: true } } });
    return waits;
  },
  "shutting-down": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, the end`);
    await using connection = await openConnection(gateway.url);
    await beginStuck(gateway, { session_id: newSession() });
    // The test that closes the gateways waits for its end.
    void gateway.gateway.drain("test", 1_000);
    const body = JSON.stringify(BODIES[route.operation]);
    const headers = { authorization: `Bearer ${keyFor(route)}`, "content-type": "application/json" };
    const place = { method: route.method, path: route.path };
    connection.write(requestText(place, headers, body));
    return await connection.reply(place);
  },
};

const closed: Provoke = async (route) =>
  call(await gatewayFor("closed door", { config: { gateway: { openai: { enabled: false } } } }), route);
/** An operation that takes no body is sent one. */
const withBody: Provoke = async (route) => {
  const place = { method: route.method, path: route.path.replace("{model}", "main") };
  const headers = { authorization: `Bearer ${keyFor(route)}`, "content-type": "application/json" };
  return exchange((await usual()).url, place, headers, "{}");
};

/** How errors come about that clients of OpenAI meet otherwise than those of REST. */
export const openAiProvocations: Partial<Record<string, Partial<Record<ErrorName, Provoke>>>> = {
  "completions.create": {
    "not-found": closed,
    "invalid-request": async (route) => call(await usual(), route, { fields: { n: 2 } }),
    "agent-not-found": async (route) => call(await usual(), route, { fields: { model: "choosy/gigantic" } }),
    "turn-running": async (route) =>
      call(await gatewayFor("short waits", { replyWaitMs: 20 }), route, { fields: { model: "stuck" } }),
  },
  "models.list": { "invalid-request": withBody, "not-found": closed },
  "models.get": {
    "invalid-request": withBody,
    "not-found": closed,
    "agent-not-found": async (route) => call(await usual(), route, { path: { model: "mian" } }),
  },
};
