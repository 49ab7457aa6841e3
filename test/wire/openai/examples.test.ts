import { describe, expect, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { BackendError } from "#kit/errors.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { type Example, nameOf, operationsAt, plain, repliesOf, requestsOf } from "#test/harness/examples.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { OPEN, openClient } from "./clients.ts";

// Readers of the contract try its examples first: each request is sent, and each reply is one that was received.

const [puppet, choosy] = [createPuppet(), createPuppet(["fast", "deep"])];
const echo = await shareGateway({
  config: { gateway: OPEN, agents: { main: { backend: "echo" }, support: { backend: "echo" } } },
  makeBackend: (name) => (name === "support" ? choosy.backend : createEchoBackend()),
});
const played = await shareGateway({ config: { gateway: OPEN }, makeBackend: () => puppet.backend });
const client = openClient(echo.url);

const operations = operationsAt("/v1");
const requests = requestsOf(operations);
const conversation = requests.find(({ name }) => name === "conversation")?.value as object;

async function complete(url: string, body: unknown): Promise<string> {
  return (await openClient(url).post("/chat/completions", { body }).asResponse()).text();
}

test.each(requests)("$operation: the request $name is answered", async ({ value }) => {
  const { stream } = value as { stream?: boolean };
  expect(await complete(echo.url, value)).toContain(stream ? "data: [DONE]" : '"object":"chat.completion"');
});

type Event = { choices?: { delta: { content?: string } }[]; usage?: unknown; error?: { message: string } };
function eventsIn(stream: unknown): Event[] {
  return String(stream)
    .split("\n\n")
    .flatMap((event) => (/^data: \{/.test(event) ? [JSON.parse(event.slice(6)) as Event] : []));
}

/** Controls the backend so that the stream becomes that of the example. */
async function playStream({ value }: Example): Promise<Event[]> {
  const wanted = eventsIn(value);
  const options = wanted.at(-1)?.usage ? { stream_options: { include_usage: true } } : {};
  await played.gateway.store.deleteSession("agent:main:openai:ada", Date.now());
  const text = complete(played.url, { ...conversation, stream: true, ...options });
  const turn = await puppet.next();
  for (const { choices, error } of wanted) {
    const content = choices?.[0]?.delta.content;
    if (content) turn.say(content);
    await new Promise((resolve) => setImmediate(resolve));
    if (error) turn.fail(new BackendError(error.message.replace("Turn failed: ", "")));
  }
  turn.use({ input: 8, output: 8 });
  turn.end();
  return eventsIn(await text);
}

/** The way in which each example of a reply is caused. */
const producers: Record<string, (example: Example) => Promise<unknown>> = {
  "completions.create 200 application/json completed": async () => JSON.parse(await complete(echo.url, conversation)),
  "completions.create 200 text/event-stream completed": playStream,
  "completions.create 200 text/event-stream failed": playStream,
  "models.list 200 application/json two": async () => (await client.models.list().asResponse()).json(),
  "models.get 200 application/json one": async () => (await client.models.retrieve("main").asResponse()).json(),
};
function timeless(value: unknown): unknown {
  return JSON.parse(JSON.stringify(plain(value)).replaceAll(/"created":\d+/g, '"created":0'));
}

describe("the examples of replies", () => {
  test.each(repliesOf(operations))("$operation $status $type: $name", async (example) => {
    const produce = producers[nameOf(example)];
    if (!produce) throw new Error("nothing here produces this example");
    const wanted = example.type === "text/event-stream" ? eventsIn(example.value) : example.value;
    expect(timeless(await produce(example))).toEqual(timeless(wanted));
  });
});
