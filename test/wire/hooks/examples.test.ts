import { describe, expect, test } from "vitest";
import { type Example, nameOf, operationsAt, plain, repliesOf, requestsOf } from "#test/harness/examples.ts";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { type HookClient, type HookSending, hookTransports } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { senders } from "#test/harness/senders.ts";

const operations = operationsAt("/hooks");
const requests = requestsOf(operations);
/** The answer to Twilio is in forms.test.ts. */
const replies = repliesOf(operations).filter(({ type }) => type === "application/json");

const slackSecret = senders.slack.makeSecret("first");
/** The configuration of the contract's examples. */
const config: SomeConfig = {
  agents: { main: { backend: "echo", model: "fast" } },
  // Nothing listens there: announcements wait.
  channels: {
    ops: { type: "webhook", url: "http://127.0.0.1:9/", secret: "whsec_b25lIHR3byB0aHJlZSBmb3VyIGZpdmUgc2l4" },
  },
  webhooks: {
    mappings: {
      alert: {
        match: { "body.status": "firing" },
        message: "{body.commonLabels.alertname}",
        session: "webhook:alerts",
        channel: "ops",
        delivery: "announce",
      },
      "github-push": {
        match: { "headers.x-github-event": "push" },
        message: "{body.pusher.name}",
        session: "webhook:github",
        channel: "ops",
        delivery: "announce",
      },
      "pull-request": {
        match: {},
        message: "{body.action}",
        session: "webhook:pr:{body.repository.full_name}:{body.number}",
        coalesce: { key: "{body.number}" },
      },
      slack: { match: {}, message: "{body.event.text}", verify: { type: "slack", secret: slackSecret } },
    },
  },
};

function exampleOf(operation: string, name: string): object {
  return requests.find((one) => one.operation === operation && one.name === name)?.value as object;
}

function push(client: HookClient, value: unknown, event = "push") {
  return client.named("github-push", value, { headers: { "x-github-event": event } });
}
async function challenge(client: HookClient, value: unknown) {
  const body = JSON.stringify(value);
  const sending: HookSending = { token: null, headers: await senders.slack.sign(slackSecret, body) };
  return client.named("slack", body, sending);
}

/** The way in which each example of a request is sent. */
function sendExample({ operation, name, value }: Example, client: HookClient): Promise<Reply> {
  if (operation === "hooks.wake") return client.wake(value);
  if (operation === "hooks.agent") return client.agent(value);
  if (operation === "hooks.mapped") return client.mapped(value);
  return name === "challenge" ? challenge(client, value) : push(client, value);
}

/** The way in which each example of a reply is caused. */
const producers: Record<string, (client: HookClient) => Promise<Reply>> = {
  "hooks.wake 200 application/json queued": (client) => client.wake(exampleOf("hooks.wake", "plain")),
  "hooks.agent 200 application/json started": (client) => client.agent(exampleOf("hooks.agent", "full")),
  "hooks.agent 200 application/json unaddressed": (client) =>
    client.agent({ ...exampleOf("hooks.agent", "full"), channel: "opps" }),
  "hooks.mapped 200 application/json matched": (client) => client.mapped(exampleOf("hooks.mapped", "alert")),
  "hooks.mappedByName 200 application/json matched": (client) => push(client, exampleOf("hooks.mappedByName", "push")),
  "hooks.mappedByName 200 application/json coalesced": async (client) => {
    const pull = { action: "synchronize", number: 12, repository: { full_name: "acme/site" } };
    await client.named("pull-request", pull);
    return client.named("pull-request", pull);
  },
  "hooks.mappedByName 200 application/json unmatched": (client) =>
    push(client, exampleOf("hooks.mappedByName", "push"), "issues"),
  "hooks.mappedByName 200 application/json challenge": (client) =>
    challenge(client, exampleOf("hooks.mappedByName", "challenge")),
};

describe.each(Object.entries(hookTransports))("over %s", async (_, { open, config: ofWay }) => {
  const gateway = await startGateway({ config: { ...config, ...ofWay } });
  const client = await open(gateway);

  test.each(requests)("the request of $operation is accepted: $name", async (example) => {
    expect((await sendExample(example, client)).status).toBe(200);
  });

  test.each(replies)("the reply of $operation is one that was received: $name", async (example) => {
    const produce = producers[nameOf(example)];
    if (!produce) throw new Error("nothing here produces this example");
    expect(plain((await produce(client)).json)).toEqual(plain(example.value));
  });

  test("and the gateway ends", async () => {
    await client[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
    expect(gateway.linesOf("unexpected.error")).toEqual([]);
  });
});
