import type { ErrorName } from "#generated/errors.ts";
import type { TestGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";
import {
  agents,
  beginStuck,
  call,
  gatewayFor,
  keyFor,
  newSession,
  type Provoke,
  skills,
  turnOf,
  usual,
} from "./provoke-gateways.ts";

const sessionOf = (agent: string, user: string): string => `agent:${agent}:openai:${user}`;

/** A turn that waits behind one that goes on. */
const queueStuck = async (gateway: TestGateway, session_id: string): Promise<void> => {
  await beginStuck(gateway, { session_id });
  const queued = await gateway.rest.stream("chat.send", { body: { message: "hi", agent: "stuck", session_id } });
  await queued.events.return(undefined);
};

const closed: Provoke = async (route) =>
  call(await gatewayFor("closed door", { config: { gateway: { openai: { enabled: false } } } }), route);

const completions: Partial<Record<ErrorName, Provoke>> = {
  "not-found": closed,
  "invalid-request": async (route) => call(await usual(), route, { fields: { n: 2 } }),
  "agent-not-found": async (route) => call(await usual(), route, { fields: { model: "choosy/gigantic" } }),
  "turn-not-found": async (route) => {
    const [gateway, user] = [await usual(), newSession()];
    const again = { headers: { "idempotency-key": user }, fields: { user } };
    await call(gateway, route, again);
    await gateway.gateway.store.deleteSession(sessionOf("main", user), Date.now());
    return call(gateway, route, again);
  },
  "session-conflict": async (route) => {
    const [gateway, user] = [await usual(), newSession()];
    const session_id = sessionOf("main", user);
    await gateway.rest.call("chat.send", { body: { message: "hi", agent: "other", session_id } });
    return call(gateway, route, { fields: { user } });
  },
  "session-full": async (route) => {
    const config = { limits: { messagesPerSession: 2 } };
    const [gateway, user] = [await gatewayFor("short sessions", { config }), newSession()];
    await call(gateway, route, { fields: { user } });
    return call(gateway, route, { fields: { user } });
  },
  "session-busy": async (route) => {
    const [gateway, user] = [
      await gatewayFor("short queues", { config: { limits: { turnsPerSession: 1 } } }),
      newSession(),
    ];
    await queueStuck(gateway, sessionOf("stuck", user));
    return call(gateway, route, { fields: { model: "stuck", user } });
  },
  "agent-unavailable": async (route) => call(await usual(), route, { fields: { model: "resting" } }),
  "turn-failed": async (route) => call(await usual(), route, { fields: { model: "broken" } }),
  "turn-timeout": async (route) => call(await usual(), route, { fields: { model: "late" } }),
  "turn-running": async (route) =>
    call(await gatewayFor("short waits", { replyWaitMs: 20 }), route, { fields: { model: "stuck" } }),
  "turn-cancelled": async (route) => {
    const [gateway, user] = [await usual(), newSession()];
    const reply = call(gateway, route, { fields: { model: "stuck", user } });
    await gateway.rest.call("turns.cancel", { path: { turn_id: await turnOf(gateway, sessionOf("stuck", user)) } });
    return reply;
  },
  "agent-removed": async (route) => {
    const gateway = await gatewayFor(`${route.operation}, an agent leaves`);
    const user = newSession();
    const session_id = sessionOf("stuck", user);
    await beginStuck(gateway, { session_id });
    const waits = call(gateway, route, { fields: { model: "stuck", user } });
    await turnOf(gateway, session_id, 2);
    const { stuck: _, ...left } = agents;
    await gateway.reload({ agents: left, skills, gateway: { defaultAgent: "main", openai: { enabled: true } } });
    return waits;
  },
};

/** What takes no body is sent one. */
const withBody: Provoke = async (route) => {
  const place = { method: route.method, path: route.path.replace("{model}", "main") };
  const headers = { authorization: `Bearer ${keyFor(route)}`, "content-type": "application/json" };
  return exchange((await usual()).url, place, headers, "{}");
};

/** How the errors come about that clients of OpenAI meet otherwise than those of REST. */
export const openAiProvocations: Partial<Record<string, Partial<Record<ErrorName, Provoke>>>> = {
  "completions.create": completions,
  "models.list": { "invalid-request": withBody, "not-found": closed },
  "models.get": {
    "invalid-request": withBody,
    "not-found": closed,
    "agent-not-found": async (route) => call(await usual(), route, { path: { model: "mian" } }),
  },
};
