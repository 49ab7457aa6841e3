import type { ErrorName } from "#generated/errors.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Route } from "#test/harness/contract.ts";
import { SECRETS, type TestGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { type Reply, targetOf } from "#test/harness/rest.ts";
import { type CallOptions, commonProvocations, newSession } from "#test/wire/call/provoked.ts";
import {
  BODIES,
  beginStuck,
  call,
  callRaw,
  configOf,
  gatewayFor,
  IDS,
  keyFor,
  type Provoke,
  usual,
  withFailingStore,
} from "./provoke-gateways.ts";

/** The names of an operation for the parts of a call. */
function fieldsFor({ surface }: Route, { agent, session, model, isOther }: CallOptions) {
  if (surface === "openai") return { ...(agent && { model: agent }), user: isOther ? "ada" : session };
  return { agent, session_id: session, model, ...(isOther && { user_id: "ada" }) };
}

const common = commonProvocations<Route, Reply>({
  nameOf: ({ operation }) => operation,
  gatewayFor: (_, ...named) => gatewayFor(...named),
  call(route, gateway, { key, token, headers, ...asked }) {
    const all = { ...headers, ...(key !== undefined && { "idempotency-key": key }) };
    return call(gateway, route, {
      fields: fieldsFor(route, asked),
      headers: all,
      ...(token === null && { key: null }),
    });
  },
  async start(_, gateway, { agent, sessionId }) {
    const body = { message: "hi", agent, session_id: sessionId };
    const { events } = await gateway.rest.stream("chat.send", { body });
    await events.return(undefined);
  },
  withFailingStore: (route, error) => withFailingStore(error, route),
  sessionIdOf: ({ surface }, agent, session) => (surface === "openai" ? `agent:${agent}:openai:${session}` : session),
  limited: { gateway: { rest: { rateLimit: { maxRequests: 1, windowMs: 60_000 } } } },
  configOf,
});

async function callTwoHosts({ url }: TestGateway, route: Route): Promise<Reply> {
  await using connection = await openConnection(url);
  connection.write(requestText(route, { host: "127.0.0.1\r\nHost: 127.0.0.1" }));
  return await connection.reply(route);
}

/** The cause of each error, on any operation that lists it. */
export const provocations: Partial<Record<ErrorName, Provoke>> = {
  ...common,
  "parse-error": async (route) => call(await usual(), route, { body: '{"message": "hi' }),
  "invalid-request": async (route) => {
    if (route.surface === "public") return callTwoHosts(await usual(), route);
    return route.bodyLimit
      ? call(await usual(), route, { fields: { surprise: true } })
      : call(await usual(), route, { target: `${targetOf(route.path, { path: IDS })}?surprise=1` });
  },
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
    if (route.scope === "chat") {
      const keys = [{ name: "narrow", key: "a-key-that-is-limited", agents: ["quiet"] }];
      const gateway = await gatewayFor("narrow key", { config: { gateway: { rest: { auth: { keys } } } } });
      return call(gateway, route, { key: "a-key-that-is-limited" });
    }
    const lesser = route.scope === "admin" ? SECRETS.key : SECRETS.adminKey;
    if (route.operation !== "ops.metrics") return call(await usual(), route, { key: lesser });
    const tokens = [{ name: "reader", token: "a-token-that-reads-lists", permissions: ["agent.list"] }];
    const gateway = await gatewayFor("narrow token", { config: { gateway: { rpc: { auth: { tokens } } } } });
    return call(gateway, route, { key: "a-token-that-reads-lists" });
  },
  "origin-not-allowed": async (route) => callRaw(await usual(), route, { origin: "https://pages.example" }),
  "method-not-allowed": async (route) => call(await usual(), route, { method: "PATCH", body: undefined }),
  "uri-too-long": async (route) => callRaw(await usual(), route, {}, `?${"a".repeat(9_000)}`),
  "headers-too-large": async (route) => callRaw(await usual(), route, { "x-padding": "a".repeat(20_000) }),
  "request-timeout": async (route) => {
    const gateway = await gatewayFor("impatient", { requestMs: 200 });
    if (route.bodyLimit) return callRaw(gateway, route, { "content-length": "1000" });
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(route).subarray(0, -2));
    return await connection.reply(route);
  },
  "too-large": async (route) => call(await usual(), route, { body: " ".repeat(1024 * 1024 + 1) }),
  // An optional body without content may have any type.
  "unsupported-media-type": async (route) =>
    call(await usual(), route, { fields: { more: true }, headers: { "content-type": "text/plain" } }),
  "turn-not-found": async (route) => (route.idempotent ? common["turn-not-found"](route) : call(await usual(), route)),
  "key-not-found": async (route) => call(await usual(), route),
  "not-found": async (route) =>
    call(await gatewayFor("no console", { config: { gateway: { console: { enabled: false } } } }), route),
  "turn-ended": async (route) => {
    const gateway = await usual();
    const { json } = await gateway.rest.call("chat.send", { body: { message: "hi" } });
    return call(gateway, route, { path: { turn_id: String(json.turn_id) } });
  },

  "skill-not-found": async (route) =>
    call(await usual(), route, {
      path: { skill_id: "summarize-thread" },
      fields: route.operation === "chat.send" ? { skill_ids: ["summarize-thread"] } : { skill_id: "summarize-thread" },
    }),
  // A call that does not start work is refused only if the disk is full.
  "store-full": (route) =>
    route.idempotent ? common["store-full"](route) : withFailingStore(new GatewayError("store-full"), route),
  "shutting-down": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, the end`);
    await using connection = await openConnection(gateway.url);
    await beginStuck(gateway, { session_id: newSession() });
    // The test that closes the gateways waits for its end.
    void gateway.gateway.drain("test", 1_000);
    const body = JSON.stringify(BODIES[route.operation] ?? {});
    const headers = { authorization: `Bearer ${keyFor(route)}`, "content-type": "application/json" };
    const place = { method: route.method, path: targetOf(route.path, { path: IDS }) };
    connection.write(requestText(place, headers, body));
    return await connection.reply(place);
  },
};

const closed: Provoke = async (route) =>
  call(await gatewayFor("closed door", { config: { gateway: { openai: { enabled: false } } } }), route);
/** An operation without a body is sent one. */
const withBody: Provoke = async (route) => {
  const place = { method: route.method, path: route.path.replace("{model}", "main") };
  const headers = { authorization: `Bearer ${keyFor(route)}`, "content-type": "application/json" };
  return exchange((await usual()).url, place, headers, "{}");
};

/** The causes of errors that differ for clients of OpenAI from those of REST. */
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
