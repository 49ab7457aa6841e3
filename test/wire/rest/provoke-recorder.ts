import type { ErrorName } from "#generated/errors.ts";
import type { SomeConfig, TestGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { targetOf } from "#test/harness/rest.ts";
import { agents, newSession, smallBudget, spend } from "#test/wire/call/provoked.ts";
import { call, gatewayFor, keyFor, type Provoke, usual } from "./provoke-gateways.ts";

/** Finds a delivery by its request: a refusal does not name its delivery. */
async function deliveryOf(gateway: TestGateway, requestId: string): Promise<string> {
  const { json } = await gateway.console.call("deliveries.list", { query: { id: requestId } });
  return String((json.deliveries as { delivery_id: string }[])[0]?.delivery_id);
}

type Sent = [below: string, body: unknown];
type Then = (gateway: TestGateway, sent: Sent) => Promise<unknown>;

/** Sends a webhook, makes a change, and replays it. */
async function replayOf(gateway: TestGateway, sent: Sent, route: Parameters<Provoke>[0], then?: Then) {
  const { requestId } = await gateway.hooks.send(...sent);
  const delivery_id = await deliveryOf(gateway, requestId);
  await then?.(gateway, sent);
  return call(gateway, route, { path: { delivery_id } });
}
function replaying(sent: Sent): Provoke {
  return async (route) => replayOf(await recording(), sent, route);
}
/** On a gateway without other refusals, because only a limited number per second is recorded. */
function recording() {
  return gatewayFor("replay, as usual");
}

/** The same on a separate gateway, which is called `name`. */
function replayingOn(name: string, config: SomeConfig, sentTo: (session: string) => Sent, then?: Then): Provoke {
  return async (route) =>
    replayOf(await gatewayFor(`replay, ${name}`, { config }), sentTo(`webhook:${newSession()}`), route, then);
}

/** The second replay on a separate gateway, because a replay counts for the caller that makes it. */
function replayingTwiceOn(name: string, config: SomeConfig): Provoke {
  return async (route) => {
    const gateway = await gatewayFor(`replay, ${name}`, { config });
    const sent = stuckIn(`webhook:${newSession()}`);
    await replayOf(gateway, sent, route);
    return await replayOf(gateway, sent, route);
  };
}

function stuckIn(session: string): Sent {
  return ["/agent", { message: "hi", agent: "stuck", session }];
}
const sendAgain: Then = ({ hooks }, sent) => hooks.send(...sent);
const gateway = { defaultAgent: "main" };
const { other: _, ...others } = agents;
const leave: Then = ({ reload }) => reload({ agents: others, gateway });
function withAlert(message: string): SomeConfig {
  return {
    agents,
    gateway,
    webhooks: { mappings: { alert: { match: {}, message } } },
  };
}

/** The causes of errors that are special for a replay. */
const replay: Partial<Record<ErrorName, Provoke>> = {
  "parse-error": replaying(["/wake", '{"text": "hi']),
  "unknown-model": replaying(["/agent", { message: "hi", agent: "choosy", model: "gigantic" }]),
  "delivery-not-replayable": async (route) => {
    const { requestId } = await (await usual()).rest.call("chat.send", { body: { message: "hi" } });
    return call(await usual(), route, { path: { delivery_id: await deliveryOf(await usual(), requestId) } });
  },
  "session-conflict": async (route) => {
    const [{ hooks }, session] = [await recording(), `webhook:${newSession()}`];
    await hooks.agent({ message: "hi", agent: "other", session });
    return replaying(["/agent", { message: "hi", agent: "main", session }])(route);
  },
  "agent-not-found": replayingOn("an agent leaves", {}, () => ["/wake", { text: "hi", agent: "other" }], leave),
  "mapping-not-found": replayingOn(
    "a mapping leaves",
    withAlert("hi"),
    () => ["/alert", {}],
    ({ reload }) => reload({ agents, gateway }),
  ),
  "heartbeat-off": replayingOn(
    "a heartbeat ends",
    {},
    () => ["/wake", { text: "hi" }],
    ({ reload }) => reload({ agents: { ...agents, main: { backend: "echo", heartbeat: { every: "off" } } }, gateway }),
  ),
  "session-full": replayingOn("short sessions", { limits: { messagesPerSession: 2 } }, stuckIn, sendAgain),
  "budget-exceeded": replayingOn("small budget", smallBudget, () => ["/agent", { message: "hi" }], spend),
  "session-busy": replayingOn("short queues", { limits: { turnsPerSession: 1 } }, stuckIn, sendAgain),
  "gateway-busy": replayingOn("one queue", { limits: { turns: 1 } }, stuckIn, sendAgain),
  "share-busy": replayingTwiceOn("a share of the queue", { limits: { turns: 3, share: 0.4 } }),
  "share-full": replayingTwiceOn("small shares", { limits: { storeBytes: "1MiB", share: 0.0003 } }),
  "store-full": replayingOn("small store", { limits: { storeBytes: 1 } }, stuckIn),
  "too-large": replayingOn(
    "a mapping says more",
    withAlert("{body.text}"),
    () => ["/alert", { text: "x".repeat(200_000) }],
    ({ reload }) => reload(withAlert("{body.text}".repeat(6))),
  ),
  "shutting-down": async (route) => {
    const ending = await gatewayFor("replay, the end");
    const { requestId } = await ending.hooks.send(...stuckIn(`webhook:${newSession()}`));
    const delivery_id = await deliveryOf(ending, requestId);
    await using connection = await openConnection(ending.url);
    // The test that closes the gateways waits for its end.
    void ending.gateway.drain("test", 1_000);
    const place = { method: route.method, path: targetOf(route.path, { path: { delivery_id } }) };
    connection.write(requestText(place, { authorization: `Bearer ${keyFor(route)}` }));
    return await connection.reply(place);
  },
};

const noAgent: Provoke = async (route) => call(await usual(), route, { path: { agent_name: "mian" } });
const unknown: Provoke = async (route) => call(await usual(), route);

/** An endpoint where no receiver listens. */
const NOWHERE = { url: "http://127.0.0.1:9/events", secret: "the-secret-of-an-endpoint", events: ["*"] };

/** An event, once it is in this state. */
async function eventIn({ gateway: { store } }: TestGateway, event_id: string, status: string) {
  while ((await store.getEvent(event_id))?.status !== status) await new Promise(setImmediate);
  return { event_id };
}

/** Adds the errors that only the flight recorder, agents and lists of turns have. */
export const recorderProvocations: Record<string, Partial<Record<ErrorName, Provoke>>> = {
  "agents.beat": { "agent-not-found": noAgent },
  "agents.pause": { "agent-not-found": noAgent },
  "agents.resume": { "agent-not-found": noAgent },
  "budgets.grant": {
    "budget-not-found": async (route) => call(await usual(), route, { path: { name: "dayly" } }),
  },
  "deliveries.get": { "delivery-not-found": unknown },
  "deliveries.replay": { ...replay, "delivery-not-found": unknown },
  "events.get": { "event-not-found": unknown },
  "events.replay": {
    "event-not-found": unknown,
    "event-not-dead": async (route) => {
      const { json } = await (await usual()).hooks.wake({ text: "hi" });
      return call(await usual(), route, { path: { event_id: String(json.eventId) } });
    },
    "agent-not-found": async (route) => {
      const left = await gatewayFor("an agent leaves its events");
      const sent: Sent = ["/wake", { text: "hi", agent: "other" }];
      const { json } = await left.hooks.send(...sent);
      await leave(left, sent);
      return call(left, route, { path: await eventIn(left, String(json.eventId), "dead") });
    },
  },
  "notifications.replay": {
    "notification-not-found": unknown,
    "notification-not-replayable": async (route) => {
      const left = await gatewayFor("an endpoint leaves", { config: { notify: { ops: NOWHERE } } });
      const { json } = await left.rest.call("chat.send", { body: { message: "hi" } });
      await left.reload({ agents, gateway });
      const notification_id = `${String(json.turn_id).replace("turn_", "ntf_")}.ops`;
      return call(left, route, { path: { notification_id } });
    },
  },
  "notifications.test": {
    "endpoint-not-found": async (route) => call(await usual(), route, { path: { name: "opps" } }),
  },
  "turns.announce": {
    "reply-not-announceable": async (route) => {
      const { json } = await (await usual()).rest.call("chat.send", { body: { message: "hi" } });
      return call(await usual(), route, { path: { turn_id: String(json.turn_id) } });
    },
  },
  "mappings.dryRun": {
    "mapping-not-found": async (route) => call(await usual(), route, { fields: { name: "github-pull" } }),
  },
};
