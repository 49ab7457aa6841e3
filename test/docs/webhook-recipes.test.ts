import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { resolveReferences } from "#config/references.ts";
import { createQueue } from "#test/harness/backends.ts";
import { type SomeConfig, shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
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
  STANDARD_WEBHOOKS_SECRET: senders["standard-webhooks"].makeSecret("recipes"),
  WEBHOOK_TOKEN: "webhook-token-of-the-tests",
  SLACK_WEBHOOK_URL: "http://127.0.0.1:9/services/T0/B0/x",
};

type Example = {
  /** The block of the page with its configuration, and its mapping. */
  recipe: string;
  mapping: string;
  verify?: { type: SignatureType; secret: string };
  headers: Record<string, string>;
  body: object;
  told: string;
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
    told: "Invoice 8F1C2A7B-0042 of Ada Lovelace (ada@example.com) was paid: 4900 eur, in the smallest unit of the currency.\nThank them in one sentence.",
    other: { ...payloads.stripeInvoicePaid, id: "evt_other", type: "invoice.finalized" },
  },
  {
    recipe: "slack-mention",
    mapping: "slack-mention",
    verify: { type: "slack", secret: SECRET_OF.SLACK_SIGNING_SECRET as string },
    headers: payloads.slackHeaders,
    body: payloads.slackMention,
    told: "U061F7AUR asks in C123ABC456 of Slack: <@U0LAN0Z89> is the build green?",
    session: "webhook:slack",
    other: { ...payloads.slackMention, event_id: "Ev2", event: { ...payloads.slackMention.event, type: "message" } },
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

/** Recipes of the page in one file, with the secrets of the environment. */
async function configOf(recipes: readonly string[], env = SECRET_OF): Promise<SomeConfig> {
  const { value, faults } = resolveReferences(await configOfPage("docs/webhooks.md", recipes), env);
  expect(faults).toEqual([]);
  return value as SomeConfig;
}

let sent = 0;
/** Sends an example like its sender: with real headers, a valid signature, and an unused id. */
async function send(client: HookClient, example: Example, { body = example.body, id = `delivery-${sent++}` } = {}) {
  const { mapping, verify, headers } = example;
  // Stripe sends JSON with line breaks.
  const text = verify?.type === "stripe" ? JSON.stringify(body, null, 2) : JSON.stringify(body);
  const signature = verify ? await senders[verify.type].sign(verify.secret, text, { id }) : {};
  if (verify) expect(await senders[verify.type].accepts(verify.secret, text, signature)).toBe(true);
  return client.send(`/${mapping}`, text, { token: null, headers: { ...headers, ...signature } });
}

async function checkTurn(gateway: TestGateway, { mapping, told, session, delivery = "none" }: Example, reply: Reply) {
  expect(reply.json).toMatchObject({ status: 200, message: "turn started", mapping, agent: "main", delivery });
  if (session) expect(reply.json.sessionId).toBe(session);
  else expect(reply.json.sessionId).toMatch(/^webhook:[0-9A-Z]{26}$/);
  const turnId = String(reply.json.turnId);
  const events = await (await gateway.rest.stream("turns.events", { path: { turn_id: turnId } })).all();
  expect(events.at(-1)?.data).toMatchObject({ status: "completed", reply: told });
  const entries = await gateway.gateway.store.readEntries(String(reply.json.sessionId), { after: 0, limit: 100 });
  expect(entries.find((entry) => entry.name === "message.created" && entry.turnId === turnId)).toMatchObject({
    text: told,
    outside: true,
  });
}

describe.each(EXAMPLES)("the recipe $recipe", async (example) => {
  const gateway = await shareGateway({ config: await configOf([example.recipe]) });
  const { hooks } = gateway;

  it("accepts only requests of its sender", async () => {
    const { verify, mapping, headers } = example;
    const text = JSON.stringify(example.body);
    const wrong = verify ? await senders[verify.type].sign(senders[verify.type].makeSecret("strangers"), text) : {};
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
      expect(again.json).toEqual(reply.json);
    }
    const other = await send(hooks, example, { body: example.other });
    expect([other.status, other.json.message]).toEqual([200, "no mapping matched"]);
  });
});

describe.each(Object.entries(hookTransports))("over %s", (_, { open, config }) => {
  it("all recipes of the page work in one file", async () => {
    const recipes = await configOf(EXAMPLES.map(({ recipe }) => recipe));
    await using gateway = await startGateway({ config: { ...recipes, ...config } });
    await using client = await open(gateway);
    // The stream clients do not support a test's TLS, so the turn's result is read from the store.
    for (const example of EXAMPLES) {
      const reply = await send(client, example);
      expect(reply.json).toMatchObject({ mapping: example.mapping, message: "turn started" });
      const entries = await gateway.gateway.store.readEntries(String(reply.json.sessionId), { after: 0, limit: 100 });
      expect(entries).toContainEqual(
        expect.objectContaining({ name: "message.created", text: example.told, outside: true }),
      );
    }
    const challenged = await send(client, EXAMPLES.find(({ recipe }) => recipe === "slack-mention") as Example, {
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
      ["opened", "ready_for_review", "synchronize"].includes(String(action)) &&
      !(pull_request as { draft: boolean }).draft,
    workflow_run: () => false,
  };
  const events = Object.keys(MATCHING);
  const { hooks } = await shareGateway({ config: await configOf(events.map((event) => github(event).recipe)) });
  const exampleFor = (event: string) => EXAMPLES.find(({ recipe }) => recipe === github(event).recipe) as Example;

  test.each(events)("for %s is answered with 200, and starts a turn if the recipe says so", async (event) => {
    const bodies = githubExamples(event);
    expect(bodies.length).toBeGreaterThan(4);
    for (const body of bodies) {
      const { status, json } = await send(hooks, exampleFor(event), { body });
      const started = MATCHING[event]?.(body) ? "turn started" : "no mapping matched";
      expect([status, json.message, body.action]).toEqual([200, started, body.action]);
    }
  });

  it("and its first ping starts nothing", async () => {
    for (const body of githubExamples("ping")) {
      const { json } = await send(hooks, { ...exampleFor("push"), headers: githubHeaders("ping") }, { body });
      expect(json.message).toBe("no mapping matched");
    }
  });
});

it("the reply to a failed run of GitHub Actions goes to Slack", async () => {
  const posted = createQueue<{ text: string }>();
  const receiver = createServer(async (req, res) => {
    let body = "";
    for await (const part of req) body += part;
    posted.put(JSON.parse(body) as { text: string });
    res.end("ok");
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void receiver.close());
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/services/T0/B0/x`;
  const config = await configOf(["github-workflow-run"], { ...SECRET_OF, SLACK_WEBHOOK_URL: url });
  await using gateway = await startGateway({ config });
  const example = EXAMPLES.find(({ recipe }) => recipe === "github-workflow-run") as Example;
  const reply = await send(gateway.hooks, example);
  await checkTurn(gateway, example, reply);
  expect((await posted.take()).text).toContain("ended as failure on main of Codertocat/Hello-World");
});

test("every recipe of the page is tested here", () => {
  const shown = blocksOf("docs/webhooks.md").filter(({ language, name }) => language === "json5" && name !== "");
  const others = ["gateway.json5", "rotation"];
  expect(shown.map(({ name }) => name).filter((name) => !others.includes(name))).toEqual(
    EXAMPLES.map(({ recipe }) => recipe),
  );
});
