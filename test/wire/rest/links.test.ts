import { describe, expect, test } from "vitest";
import type { Operation } from "#generated/routes.ts";
import { isFields } from "#test/contract/spec.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { checkedFetch, type Reply, routeOf } from "#test/harness/rest.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";

const gateway = await shareGateway({
  config: {
    gateway: { defaultAgent: "main" },
    agents: { main: { backend: "echo" }, paused: { backend: "echo" } },
    webhooks: { mappings: { alert: { match: { "body.status": "firing" }, message: "{body.status}" } } },
    schedules: { brief: { every: "1d", message: "Write the brief of the day." } },
    notify: { ops: { url: "http://127.0.0.1:9/", secret: "the-secret-of-an-endpoint", events: ["turn.*"] } },
    skills: { dirs: [skillsFolder(SUMMARISE)] },
  },
});
const { console: rest, hooks } = gateway;
await rest.call("agents.pause", { path: { agent_name: "paused" } });

const alert = { status: "firing" };
function wake(): Promise<Reply> {
  return hooks.wake({ text: "The build is green.", mode: "now" });
}
function createKey(): Promise<Reply> {
  return rest.call("keys.create", { body: { name: "support desk" } });
}
/** Only the turn of a paused agent can always be cancelled. */
function agentFor(to: Operation): string {
  return to === "turns.cancel" ? "paused" : "main";
}
function started(to: Operation): Promise<Reply> {
  return to === "events.get" ? wake() : hooks.named("alert", alert);
}

/** The first page of a list with more entries than the page. */
async function firstPage(list: Operation, add: () => Promise<unknown>): Promise<Reply> {
  await add();
  await add();
  return rest.call(list, { query: { limit: "1" } });
}

/** Requests with the answers that have links, by operation and status. They are given the operation that the link leads to. */
const requests: Record<string, (to: Operation) => Promise<Reply>> = {
  "chat.send 200": () => rest.call("chat.send", { body: { message: "hi" } }),
  "chat.send 202": (to) => rest.call("chat.send", { body: { message: "hi", agent: agentFor(to), wait: false } }),
  "skills.trigger 200": () => rest.call("skills.trigger", { body: { skill_id: "summarise-thread" } }),
  "skills.trigger 202": (to) =>
    rest.call("skills.trigger", { body: { skill_id: "summarise-thread", agent: agentFor(to), wait: false } }),
  "turns.list 200": () => firstPage("turns.list", () => hooks.named("alert", alert)),
  "turns.get 200": async (to) => {
    const { json } = await rest.call("chat.send", { body: { message: "hi", agent: agentFor(to), wait: false } });
    return rest.call("turns.get", { path: { turn_id: String(json.turn_id) } });
  },
  "schedules.run 200": () => rest.call("schedules.run", { path: { schedule_name: "brief" } }),
  "deliveries.list 200": () => firstPage("deliveries.list", () => hooks.named("alert", alert)),
  "deliveries.get 200": async (to) => {
    const { json } = await started(to);
    return rest.call("deliveries.get", { path: { delivery_id: String(json.deliveryId) } });
  },
  "deliveries.replay 200": async (to) => {
    const { json } = await started(to);
    return rest.call("deliveries.replay", { path: { delivery_id: String(json.deliveryId) } });
  },
  "events.list 200": () => firstPage("events.list", wake),
  "events.get 200": async () => {
    const path = { event_id: String((await wake()).json.eventId) };
    await expect.poll(async () => (await rest.call("events.get", { path })).json.turn_id).not.toBeNull();
    return rest.call("events.get", { path });
  },
  "notifications.list 200": () =>
    firstPage("notifications.list", () => rest.call("chat.send", { body: { message: "hi" } })),
  "keys.list 200": () => firstPage("keys.list", createKey),
  "keys.create 201": createKey,
  "keys.rotate 201": async () => {
    const { json } = await createKey();
    return rest.call("keys.rotate", { path: { key_id: String(json.key_id) } });
  },
  "hooks.wake 200": wake,
  "hooks.agent 200": () => hooks.agent({ message: "hi" }),
  "hooks.mapped 200": () => hooks.mapped(alert),
  "hooks.mappedByName 200": () => hooks.named("alert", alert),
};

const links = linksOf(await (await checkedFetch(new Request(`${gateway.url}/openapi.json`))).json());

test("every answer with links is requested here", () => {
  expect(Object.keys(requests).toSorted()).toEqual([...new Set(links.map(({ from }) => from))].toSorted());
});

describe.each(links)("the link $name of $from", ({ from, to, parameters }) => {
  test(`leads to ${to}`, async () => {
    const request = requests[from] as (to: Operation) => Promise<Reply>;
    const { json } = await request(to);
    const values = Object.entries(parameters).map(([name, expression]) => [name, valueAt(expression, json)]);
    const place = routeOf(to).path.includes("{") ? "path" : "query";
    const sending = { [place]: Object.fromEntries(values) };
    if (routeOf(to).stream) expect((await (await rest.stream(to, sending)).all()).at(-1)?.event).toMatch(/^turn\./);
    else expect((await rest.call(to, sending)).status).toBeLessThan(300);
  });
});

/** The value of a runtime expression in an answer. */
function valueAt(expression: string, json: Record<string, unknown>): string {
  const [, name = ""] = /^\$response\.body#\/(\w+)$/.exec(expression) ?? [];
  expect(json[name], expression).toBeTypeOf("string");
  return String(json[name]);
}

type Link = { from: string; name: string; to: Operation; parameters: Record<string, string> };

/** The links of a document, with the operation and the status of their answer. */
function linksOf(document: unknown): Link[] {
  const follow = (node: unknown): Record<string, unknown> => {
    if (!isFields(node)) return {};
    const path = typeof node.$ref === "string" ? node.$ref.split("/").slice(1) : [];
    return path.length === 0 ? node : follow(path.reduce((at: unknown, key) => follow(at)[key], document));
  };
  return Object.values(follow(follow(document).paths)).flatMap((item) =>
    Object.values(follow(item)).flatMap((operation) =>
      Object.entries(follow(follow(operation).responses)).flatMap(([status, response]) =>
        Object.entries(follow(follow(response).links)).map(([name, node]) => {
          const { operationId, parameters } = follow(node);
          const from = `${follow(operation).operationId} ${status}`;
          return { from, name, to: operationId as Operation, parameters: parameters as Link["parameters"] };
        }),
      ),
    ),
  );
}
