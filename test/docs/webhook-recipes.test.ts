import { createHmac } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { App, LogLevel } from "@slack/bolt";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { resolveReferences } from "#config/references.ts";
import { answer, type Received, startReceiver } from "#test/channels/receiver.ts";
import { merge, type SomeConfig, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { type HookClient, hookTransports } from "#test/harness/hooks.ts";
import type { Reply } from "#test/harness/rest.ts";
import { senders } from "#test/harness/senders.ts";
import type { SignatureType } from "#wire/hooks/signatures.ts";
import { blocksOf } from "./blocks.ts";
import * as payloads from "./payloads.ts";
import { configOfPage } from "./recipes.ts";

const { githubExamples, githubHeaders } = payloads;
const SECRET_OF: Record<string, string> = {
  GITHUB_SECRET: senders.github.makeSecret("recipes"),
  STRIPE_SECRET: senders.stripe.makeSecret("recipes"),
  SLACK_SIGNING_SECRET: senders.slack.makeSecret("recipes"),
  SLACK_BOT_TOKEN: "xoxb-token-of-the-tests",
  LINEAR_SECRET: senders.linear.makeSecret("recipes"),
  TWILIO_AUTH_TOKEN: senders.twilio.makeSecret("recipes"),
  STANDARD_WEBHOOKS_SECRET: senders["standard-webhooks"].makeSecret("recipes"),
  WEBHOOK_TOKEN: "webhook-token-of-the-tests",
  SLACK_WEBHOOK_URL: "http://127.0.0.1:9/services/T0/B0/x",
};

type Verify = { type: SignatureType; secret: string; url?: string };
type Example = {
  /** The block of the page with its configuration, and its mapping. */
  recipe: string;
  mapping: string;
  verify?: Verify;
  headers: Record<string, string>;
  body: object;
  /** The body as its sender writes it, if that is not plain JSON. */
  write?: (body: object) => string;
  /** The body of its answer, if that is not JSON. */
  answer?: string;
  /** The recipe starts one turn for a burst. */
  isBurst?: true;
  told: string;
  /** By default the turn has a new one. */
  session?: string;
  delivery?: "announce" | "none";
  other: object;
};

function github(event: string) {
  return {
    recipe: `github-${event.replace("_", "-")}`,
    mapping: `github-${event.replace("_", "-")}`,
    verify: { type: "github", secret: SECRET_OF.GITHUB_SECRET as string } as const,
    headers: githubHeaders(event),
  };
}
function exampleOf(event: string, wanted: (example: Record<string, unknown>) => boolean): Record<string, unknown> {
  const found = githubExamples(event).find(wanted);
  if (!found) throw new Error(`there is no such example of ${event}`);
  return found;
}
function opened({ action }: Record<string, unknown>) {
  return action === "opened";
}
/** None of the examples is of a failed run, so this one is changed. */
function failedRun() {
  const run = exampleOf("workflow_run", ({ action }) => action === "completed") as { workflow_run: object };
  return { ...run, workflow_run: { ...run.workflow_run, conclusion: "failure" } };
}

const NO_BODY = "";
const slackVerify = { type: "slack", secret: SECRET_OF.SLACK_SIGNING_SECRET as string } as const;
function formOf(body: object): string {
  return new URLSearchParams(body as Record<string, string>).toString();
}
/** The form of Slack's buttons. */
function payloadOf(body: object): string {
  return formOf({ payload: JSON.stringify(body) });
}
/** Stripe sends JSON with line breaks. */
function indented(body: object): string {
  return JSON.stringify(body, null, 2);
}

const EXAMPLES: Example[] = [
  {
    ...github("push"),
    body: exampleOf("push", ({ ref }) => ref === "refs/heads/master"),
    told: "Codertocat pushed to Codertocat/Hello-World: Initial commit\nChanges: https://github.com/Codertocat/Hello-World/commit/6113728f27ae82c7b1a177c8d03f9e96e0adf246\nSay in three sentences what changed and what could break.",
    session: "webhook:github-push",
    other: exampleOf("push", ({ ref }) => ref === "refs/tags/simple-tag"),
  },
  {
    ...github("issues"),
    body: exampleOf("issues", opened),
    told: "Issue 1 of Codertocat/Hello-World was opened by Codertocat: Spelling error in the README file\n\nIt looks like you accidently spelled 'commit' with two 't's.\n\nSuggest labels and who should look at it.",
    other: exampleOf("issues", ({ action }) => action === "labeled"),
  },
  {
    ...github("pull_request"),
    body: exampleOf("pull_request", (example) => opened(example) && example.number === 2),
    told: "Review pull request 2 of Codertocat/Hello-World by Codertocat: Update the README with new information. (https://github.com/Codertocat/Hello-World/pull/2)\n\nThis is a pretty simple change that we need to pull into master.",
    session: "webhook:pr:Codertocat~2fHello-World:2",
    isBurst: true,
    other: exampleOf("pull_request", ({ action }) => action === "closed"),
  },
  {
    ...github("workflow_run"),
    body: failedRun(),
    told: "Manually triggered workflow ended as failure on main of Codertocat/Hello-World: https://github.com/octo-org/octo-repo/actions/runs/1589141559\nThe commit says: Update milestone-created.yml",
    delivery: "announce",
    other: exampleOf("workflow_run", ({ action }) => action === "requested"),
  },
  {
    recipe: "stripe-invoice-paid",
    mapping: "stripe-invoice-paid",
    verify: { type: "stripe", secret: SECRET_OF.STRIPE_SECRET as string },
    headers: payloads.stripeHeaders,
    body: payloads.stripeInvoicePaid,
    write: indented,
    told: "Invoice 8F1C2A7B-0042 of Ada Lovelace (ada@example.com) was paid: 4900 eur, in the smallest unit of the currency.\nThank them in one sentence.",
    session: "webhook:stripe:cus_TSjN0xQkR2sVb7",
    other: { ...payloads.stripeInvoicePaid, id: "evt_other", type: "invoice.finalized" },
  },
  {
    recipe: "slack-mention",
    mapping: "slack-mention",
    verify: slackVerify,
    headers: payloads.slackHeaders,
    body: payloads.slackMention,
    told: "U061F7AUR asks in C123ABC456 of Slack: <@U0LAN0Z89> is the build green?",
    session: "webhook:slack:C123ABC456:1763711671.000100",
    delivery: "announce",
    other: { ...payloads.slackMention, event_id: "Ev2", event: { ...payloads.slackMention.event, type: "message" } },
  },
  {
    recipe: "slack-interactions",
    mapping: "slack-command",
    verify: slackVerify,
    headers: payloads.formHeaders,
    body: payloads.slackCommand,
    write: formOf,
    answer: NO_BODY,
    told: "ada asks in builds of Slack: is the build green? 100% & a+b=c; ünsure",
    session: "webhook:slack:C123ABC456:U061F7AUR",
    delivery: "announce",
    other: { ...payloads.slackCommand, trigger_id: "1.2.3", command: "/other" },
  },
  {
    recipe: "slack-interactions",
    mapping: "slack-button",
    verify: slackVerify,
    headers: payloads.formHeaders,
    body: payloads.slackButton,
    write: payloadOf,
    answer: NO_BODY,
    told: "ada pressed approve for deploy 4.2. Carry it out.",
    session: "webhook:slack:C123ABC456:1763711671.000100",
    delivery: "announce",
    other: { ...payloads.slackButton, trigger_id: "4.5.6", type: "view_submission" },
  },
  {
    recipe: "linear-issue",
    mapping: "linear-issue",
    verify: { type: "linear", secret: SECRET_OF.LINEAR_SECRET as string },
    headers: payloads.linearHeaders,
    body: payloads.linearIssue(),
    told: "Ada Lovelace changed issue CLK-42: The clock is late (https://linear.app/example/issue/CLK-42/the-clock-is-late)\nState: Backlog. Priority: High.\n\nBy a minute a day.\n\nSay what is missing to begin with the work.",
    session: "webhook:linear:CLK-42",
    isBurst: true,
    other: { ...payloads.linearIssue(), action: "remove" },
  },
  {
    recipe: "twilio-sms",
    mapping: "twilio-sms",
    verify: {
      type: "twilio",
      secret: SECRET_OF.TWILIO_AUTH_TOKEN as string,
      url: "https://gateway.example.com/hooks/twilio-sms",
    },
    headers: payloads.twilioHeaders,
    body: payloads.twilioSms,
    write: formOf,
    answer: "<Response/>",
    told: "+14155550100 writes: Is my parcel here? 100% sure & ünsure + more",
    session: "webhook:sms:~2b14155550100",
    isBurst: true,
    other: { ...payloads.twilioSms, SmsStatus: "delivered" },
  },
  {
    recipe: "grafana-alert",
    mapping: "grafana-alert",
    headers: { ...payloads.grafanaHeaders, authorization: `Bearer ${SECRET_OF.WEBHOOK_TOKEN}` },
    body: payloads.grafanaFiring,
    told: 'Grafana says: [FIRING:1] DiskFull (Databases db-1)\nThe disk of db-1 is nearly full.\nStatus: firing. Labels: {"alertname":"DiskFull","grafana_folder":"Databases","instance":"db-1"}. First alert: {"alertname":"DiskFull","grafana_folder":"Databases","instance":"db-1"}, values {"B":95.2,"C":1}.\nIs it urgent, and where should the team look first?',
    session: "webhook:grafana",
    other: { ...payloads.grafanaFiring, status: "nodata" },
  },
  {
    recipe: "standard-webhooks",
    mapping: "user-created",
    verify: { type: "standard-webhooks", secret: SECRET_OF.STANDARD_WEBHOOKS_SECRET as string },
    headers: { "content-type": "application/json" },
    body: payloads.userCreated,
    told: "A new user: Ada Lovelace <ada@example.com>, at 2026-11-21T08:54:31.123456Z. Write a welcome.",
    other: { ...payloads.userCreated, type: "user.deleted" },
  },
];

/** The address for replies to Slack in the tests. Nothing listens there. */
const NOWHERE = "http://127.0.0.1:9/api/chat.postMessage";

/** Recipes of the page in one file, with the secrets of the environment, and shorter waits for bursts. */
async function configOf(recipes: readonly string[], { slack = NOWHERE, env = {} } = {}): Promise<SomeConfig> {
  const { value, faults } = resolveReferences(await configOfPage("docs/webhooks.md", [...new Set(recipes)]), {
    ...SECRET_OF,
    ...env,
  });
  expect(faults).toEqual([]);
  const { channels, webhooks } = value as SomeConfig;
  const waits = Object.entries(webhooks?.mappings ?? {}).flatMap(([name, mapping]) =>
    mapping?.coalesce ? [[name, { coalesce: { window: "1s" } }]] : [],
  );
  return merge(value as object, {
    webhooks: { mappings: Object.fromEntries(waits) },
    ...(channels?.slack && { channels: { slack: { url: slack } } }),
  }) as SomeConfig;
}

let sent = 0;
/** The headers of a signature. Twilio signs an address and the fields of a form, as its documentation says. */
function signatureOf({ type, secret, url }: Verify, text: string, id?: string): Promise<Record<string, string>> {
  if (url === undefined) return senders[type].sign(secret, text, id === undefined ? {} : { id });
  const signed =
    url +
    [...new URLSearchParams(text)]
      .map(([name, value]) => name + value)
      .sort()
      .join("");
  return Promise.resolve({
    ...(id !== undefined && { "i-twilio-idempotency-token": id }),
    "x-twilio-signature": createHmac("sha1", secret).update(signed).digest("base64"),
  });
}

/** The request of an example's sender: with real headers, a valid signature, and an unused id. */
async function requestOf(example: Example, { body = example.body, id = `delivery-${sent++}` } = {}) {
  const { verify, headers, write = JSON.stringify } = example;
  const text = write(body);
  if (!verify) return { text, headers };
  const signature = await signatureOf(verify, text, id);
  if (!verify.url) expect(await senders[verify.type].accepts(verify.secret, text, signature)).toBe(true);
  return { text, headers: { ...headers, ...signature } };
}

async function send(client: HookClient, example: Example, options?: { body?: object; id?: string }): Promise<Reply> {
  const { text, headers } = await requestOf(example, options);
  return client.send(`/${example.mapping}`, text, { token: null, headers });
}

/** The newest recorded request of a mapping: an empty answer names no turn. */
async function newestOf({ gateway }: TestGateway, { mapping }: Example) {
  const { items } = await gateway.store.listDeliveries({ mapping, limit: 1 });
  return { turnId: String(items[0]?.turnId), sessionId: String(items[0]?.sessionId) };
}

function checkAnswer({ mapping, delivery = "none", answer: text }: Example, reply: Reply): void {
  expect(reply.status).toBe(200);
  if (text !== undefined) expect(reply.text).toBe(text);
  else expect(reply.json).toMatchObject({ status: 200, message: "turn started", mapping, agent: "main", delivery });
}

/** The turn of an accepted request, once it has ended. */
async function checkTurn(gateway: TestGateway, example: Example, reply: Reply): Promise<void> {
  checkAnswer(example, reply);
  const { told, session } = example;
  const { turnId, sessionId } = example.answer !== undefined ? await newestOf(gateway, example) : reply.json;
  if (session) expect(sessionId).toBe(session);
  else expect(sessionId).toMatch(/^webhook:[0-9A-Z]{26}$/);
  await gateway.logged("turn.ended", { turnId });
  expect(await gateway.gateway.store.getTurn(String(turnId))).toMatchObject({ status: "completed", reply: told });
  const entries = await gateway.gateway.store.readEntries(String(sessionId), { after: 0, limit: 100 });
  expect(entries.find((entry) => entry.name === "message.created" && entry.turnId === turnId)).toMatchObject({
    text: told,
    outside: true,
  });
}

describe.each(EXAMPLES)("the mapping $mapping", async (example) => {
  const gateway = await shareGateway({ config: await configOf([example.recipe]) });
  const { hooks } = gateway;

  it("accepts only requests of its sender", async () => {
    const { verify, mapping, headers, write = JSON.stringify } = example;
    const text = write(example.body);
    const wrong = verify
      ? await signatureOf({ ...verify, secret: senders[verify.type].makeSecret("strangers") }, text)
      : {};
    const strange = verify ? headers : { ...headers, authorization: "Bearer of-somebody-else" };
    for (const given of [{ ...strange, ...wrong }, strange]) {
      const reply = await hooks.send(`/${mapping}`, text, { token: null, headers: given });
      expect([reply.status, reply.error]).toEqual([401, "unauthenticated"]);
    }
    expect(gateway.gateway.store.stats().sessions).toBe(0);
  });

  it("gives the agent the sender's message once, however often it is sent, and ignores other events", async () => {
    const reply = await send(hooks, example, { id: "delivery-of-the-sender" });
    await checkTurn(gateway, example, reply);
    if (example.verify) {
      const again = await send(hooks, example, { id: "delivery-of-the-sender" });
      expect(again.headers.get("idempotent-replayed")).toBe("true");
      expect([again.text, again.json]).toEqual([reply.text, reply.json]);
    }
    const other = await send(hooks, example, { body: example.other });
    if (example.answer !== undefined) expect([other.status, other.text]).toEqual([200, example.answer]);
    else expect([other.status, other.json.message]).toEqual([200, "no mapping matched"]);
    expect(gateway.linesOf("turn.ended")).toHaveLength(1);
  });
});

describe.each(Object.entries(hookTransports))("over %s", (_, { open, config }) => {
  it("all recipes of the page work in one file", async () => {
    const recipes = await configOf(EXAMPLES.map(({ recipe }) => recipe));
    await using gateway = await startGateway({ config: { ...recipes, ...config } });
    await using client = await open(gateway);
    for (const example of EXAMPLES) checkAnswer(example, await send(client, example));
    // The mention and the button have the same thread, and so the same session.
    const sessions = new Set(EXAMPLES.map(({ mapping, session = mapping }) => session));
    await gateway.until(() => gateway.linesOf("turn.ended").length === EXAMPLES.length);
    expect(gateway.gateway.store.stats().sessions).toBe(sessions.size);
    const challenged = await send(client, exampleFor("slack-mention"), {
      body: payloads.slackChallenge,
    });
    expect(challenged.json).toEqual({ challenge: payloads.slackChallenge.challenge });
  });
});

describe("every example of GitHub's package", async () => {
  const MATCHING: Record<string, (body: Record<string, unknown>) => boolean> = {
    push: ({ ref, deleted }) => ref === "refs/heads/master" && deleted === false,
    issues: ({ action }) => action === "opened" || action === "reopened",
    pull_request: ({ action, pull_request }) =>
      ["opened", "reopened", "ready_for_review", "synchronize"].includes(String(action)) &&
      !(pull_request as { draft: boolean }).draft,
    workflow_run: () => false,
  };
  const events = Object.keys(MATCHING);
  const { hooks } = await shareGateway({ config: await configOf(events.map((event) => github(event).recipe)) });

  test.each(events)("for %s is answered with 200, and starts a turn if the recipe says so", async (event) => {
    const bodies = githubExamples(event);
    expect(bodies.length).toBeGreaterThan(4);
    const opened = new Set<unknown>();
    for (const body of bodies) {
      const { status, json } = await send(hooks, exampleFor(github(event).mapping), { body });
      const isJoined = event === "pull_request" && opened.has(body.number);
      const started = isJoined ? "joined an open turn" : "turn started";
      if (MATCHING[event]?.(body)) opened.add(body.number);
      const message = MATCHING[event]?.(body) ? started : "no mapping matched";
      expect([status, json.message, body.action]).toEqual([200, message, body.action]);
    }
  });

  it("and its first ping starts nothing", async () => {
    for (const body of githubExamples("ping")) {
      const { json } = await send(hooks, { ...exampleFor("github-push"), headers: githubHeaders("ping") }, { body });
      expect(json.message).toBe("no mapping matched");
    }
  });
});

function exampleFor(mapping: string): Example {
  return EXAMPLES.find((example) => example.mapping === mapping) as Example;
}

it("the reply to a failed run of GitHub Actions goes to Slack", async () => {
  await using receiver = await startReceiver();
  const url = `${receiver.url}/services/T0/B0/x`;
  const config = await configOf(["github-workflow-run"], { env: { SLACK_WEBHOOK_URL: url } });
  await using gateway = await startGateway({ config });
  const example = exampleFor("github-workflow-run");
  await checkTurn(gateway, example, await send(gateway.hooks, example));
  await receiver.received(1);
  expect(JSON.parse(String(receiver.requests[0]?.body)).text).toContain(
    "ended as failure on main of Codertocat/Hello-World",
  );
});

describe("in Slack", () => {
  it.each([
    ["slack-mention", { channel: "C123ABC456", thread_ts: "1763711671.000100" }],
    ["slack-button", { channel: "C123ABC456", thread_ts: "1763711671.000100" }],
    ["slack-command", { channel: "C123ABC456" }],
  ])("the reply to %s is posted by the app where it was asked", async (mapping, to) => {
    await using slack = await startReceiver([answer(200, {}, '{"ok":true}')]);
    const example = exampleFor(mapping);
    const config = await configOf([example.recipe], { slack: `${slack.url}/api/chat.postMessage` });
    await using gateway = await startGateway({ config });
    await checkTurn(gateway, example, await send(gateway.hooks, example));
    await slack.received(1);
    const { path, headers, body } = slack.requests[0] as Received;
    expect([path, headers.authorization]).toEqual(["/api/chat.postMessage", `Bearer ${SECRET_OF.SLACK_BOT_TOKEN}`]);
    const { channel, thread_ts, text } = JSON.parse(String(body));
    expect({ channel, thread_ts, text }).toEqual({ ...to, text: expect.any(String) });
  });

  it("a mention in a thread is answered in that thread, in its conversation", async () => {
    const example = exampleFor("slack-mention");
    const gateway = await shareGateway({ config: await configOf([example.recipe]) });
    const event = { ...payloads.slackMention.event, ts: "1763711699.000900", thread_ts: "1763711671.000100" };
    const { json } = await send(gateway.hooks, example, { body: { ...payloads.slackMention, event_id: "Ev3", event } });
    expect(json.sessionId).toBe(example.session);
  });

  it("an app of Slack's own framework accepts each request of these tests", async () => {
    const app = new App({
      signingSecret: SECRET_OF.SLACK_SIGNING_SECRET as string,
      authorize: () => Promise.resolve({ botToken: "xoxb-0", botId: "B0", botUserId: "U0" }),
      logLevel: LogLevel.ERROR,
    });
    const understood: string[] = [];
    app.event("app_mention", async ({ event }) => void understood.push(event.text));
    app.command("/ask", async ({ command, ack }) => {
      understood.push(command.text);
      await ack();
    });
    app.action("approve", async ({ action, ack }) => {
      understood.push("value" in action ? String(action.value) : "");
      await ack();
    });
    const server = (await app.start(0)) as Server;
    onTestFinished(async () => void (await app.stop()));
    const { port } = server.address() as AddressInfo;
    for (const mapping of ["slack-mention", "slack-command", "slack-button"]) {
      const { text, headers } = await requestOf(exampleFor(mapping));
      const { status } = await fetch(`http://127.0.0.1:${port}/slack/events`, { method: "POST", body: text, headers });
      expect(status).toBe(200);
    }
    expect(understood).toEqual([payloads.slackMention.event.text, payloads.slackCommand.text, "deploy 4.2"]);
  });
});

describe("a burst", async () => {
  const bursts = EXAMPLES.filter(({ isBurst }) => isBurst);
  const gateway = await shareGateway({ config: await configOf(bursts.map(({ recipe }) => recipe)) });

  it("of ten pushes to a pull request is one turn in its conversation, on the last state", async () => {
    const example = exampleFor("github-pull-request");
    const { pull_request, ...rest } = example.body as { pull_request: object };
    const replies: Reply[] = [];
    for (let n = 1; n <= 10; n++) {
      const body = { ...rest, action: "synchronize", pull_request: { ...pull_request, title: `State ${n}` } };
      replies.push(await send(gateway.hooks, example, { body }));
    }
    const [first, ...others] = replies.map(({ json }) => json);
    expect(others).toHaveLength(9);
    for (const other of others)
      expect(other).toEqual({
        ...first,
        message: "joined an open turn",
        deliveryId: other.deliveryId,
        coalesced: true,
      });
    await gateway.logged("turn.ended", { turnId: first?.turnId });
    const turn = await gateway.gateway.store.getTurn(String(first?.turnId));
    expect(turn?.reply).toContain("by Codertocat: State 10 (https");
    expect(turn?.reply).not.toContain("State 9");
  });

  it("of messages by SMS is one turn with all of them", async () => {
    const example = exampleFor("twilio-sms");
    const texts = ["Hello", "it is me", "is my parcel here?"];
    for (const Body of texts) {
      const body = { ...payloads.twilioSms, Body, MessageSid: `SM${Body.length}` };
      expect(await send(gateway.hooks, example, { body })).toMatchObject({ status: 200, text: "<Response/>" });
    }
    const { turnId } = await newestOf(gateway, example);
    await gateway.logged("turn.ended", { turnId });
    const turn = await gateway.gateway.store.getTurn(turnId);
    expect(turn?.reply).toBe(texts.map((text) => `+14155550100 writes: ${text}`).join("\n\n"));
  });
});

test("the tests sign for Twilio as its own example does", async () => {
  const fields = { CallSid: "CA1234567890ABCDE", Caller: "+14158675309", Digits: "1234", From: "+14158675309" };
  const url = "https://mycompany.com/myapp.php?foo=1&bar=2";
  const text = formOf({ ...fields, To: "+18005551212" });
  expect(await signatureOf({ type: "twilio", secret: "12345", url }, text)).toEqual({
    "x-twilio-signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
  });
});

test("every recipe of the page is tested here", () => {
  const shown = blocksOf("docs/webhooks.md").filter(({ language, name }) => language === "json5" && name !== "");
  const others = ["gateway.json5", "rotation"];
  expect(shown.map(({ name }) => name).filter((name) => !others.includes(name))).toEqual([
    ...new Set(EXAMPLES.map(({ recipe }) => recipe)),
  ]);
});
