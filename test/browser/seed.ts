import { createHmac } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callers, TOKENS } from "./browser.ts";

/** The answers of the agents in the pictures, by a word of the message. */
export const REPLIES: readonly (readonly [word: string, reply: string])[] = [
  [
    "4711",
    "Order **4711** left our warehouse this morning.\n\n| Step | When |\n|---|---|\n| Packed | 07:40 |\n| Handed to the carrier | 08:15 |\n| Expected | tomorrow, before noon |\n\nWould you like a message when it arrives?",
  ],
  [
    "address",
    "Yes, until it is handed to the carrier. Order 4711 is already on its way, so only the carrier can change it:\n\n1. Open the tracking page.\n2. Choose *Change delivery*.\n3. Enter the new address.",
  ],
  ["thank", "You're welcome, Ada. I'll write to you when it arrives."],
  [
    "pushed",
    "I read the change: it moves the sweep to the monotonic clock, and adds a test for a clock that jumps. CI is green. I have nothing to add.",
  ],
  ["Deploy", "Deploy noted. Error rate and latency are where they were an hour ago, so I see no reason to roll back."],
  [
    "incident",
    "**Summary.** Checkout answered slowly for 14 minutes. The payment provider's API timed out; retries hid most of it.\n\n**Next step.** Lower the timeout of the payment client to 5 s.",
  ],
  ["invoice", "Invoice `in_1PxK` is paid: 49.00 EUR by card. I filed it under *Subscriptions*."],
  ["nightly", "The nightly build is green. Nothing to do."],
];

const SKILL = `---
name: summarise-incident
description: Summarises an incident from its timeline. Use it once the incident is over.
---
# Summarise an incident

1. Read the timeline from the first alert to the last.
2. Say **what customers saw**, for how long, and why.
3. End with one next step, and who does it.

Never name a customer.
`;

const PARAMS = {
  type: "object",
  required: ["incident"],
  properties: {
    incident: { type: "string", description: "The incident's number.", examples: ["INC-204"] },
    audience: { type: "string", enum: ["team", "customers"], default: "team", description: "Who reads it." },
    length: { type: "integer", minimum: 1, maximum: 10, default: 3, description: "In sentences." },
  },
};

const GITHUB_SECRET = "github-secret-of-the-pages-12";

/** The service that answers for the agents. Some turns are slow, so that pages show running work. */
async function startAgents() {
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const part of req) body += part;
    const { kind, message } = JSON.parse(body) as { kind: string; message: { text: string } };
    const { text } = message;
    if (text.includes("overloaded")) return void res.writeHead(503).end();
    const [, reply = "I made a note of that."] = REPLIES.find(([word]) => text.includes(word)) ?? [];
    const usage = { input: 180 + text.length, output: Math.ceil(reply.length / 4) };
    const answer =
      kind === "summarise"
        ? { summary: "Ada asked where order 4711 is, and whether its address can be changed." }
        : { reply, usage };
    setTimeout(
      () => res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer)),
      text.includes("slowly") ? 120_000 : 180 + (text.length % 7) * 60,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** A realistic configuration of a gateway, and its content. */
export async function createSeed() {
  const folder = mkdtempSync(join(tmpdir(), "gateway-seed-"));
  mkdirSync(join(folder, "skills/summarise-incident"), { recursive: true });
  writeFileSync(join(folder, "skills/summarise-incident/SKILL.md"), SKILL);
  writeFileSync(join(folder, "skills/summarise-incident/params.schema.json"), JSON.stringify(PARAMS));
  mkdirSync(join(folder, "skills/half-done"), { recursive: true });
  writeFileSync(join(folder, "skills/half-done/SKILL.md"), "---\nname: half-done\n---\nIt has no description.\n");
  const agents = await startAgents();
  const http = { url: `http://127.0.0.1:${(agents.address() as AddressInfo).port}/` };
  const config = {
    gateway: {
      defaultAgent: "support",
      rest: {
        auth: {
          keys: [
            { name: "shop", key: TOKENS.chat },
            { name: "on-call", key: TOKENS.admin, scopes: ["admin"] },
          ],
        },
      },
      rpc: {
        auth: {
          tokens: [
            { name: "ops", token: TOKENS.rpc, permissions: "*" },
            {
              name: "dashboard",
              token: "rpc-dashboard-token-of-the-pages",
              permissions: ["agent.list", "agent.status", "session.list", "system.health"],
            },
          ],
        },
      },
      console: { token: TOKENS.console },
    },
    webhooks: {
      token: TOKENS.webhook,
      mappings: {
        "github-push": {
          match: { "headers.x-github-event": "push", "body.ref": "refs/heads/main" },
          message: "{body.pusher.name} pushed {body.head_commit.message}",
          session: "webhook:github",
          agent: "review",
          verify: { type: "github", secret: GITHUB_SECRET },
        },
        deploys: {
          match: { "body.kind": "deploy", "body.environment": "production" },
          message: "Deploy of {body.service} {body.version} by {body.by.name}",
          session: "webhook:deploys",
          agent: "on-call",
        },
        invoices: {
          match: { "body.type": "invoice.paid" },
          message: "The invoice {body.data.object.id} was paid",
          session: "webhook:billing",
          agent: "support",
        },
      },
    },
    agents: {
      support: {
        backend: "http",
        description: "Answers customers' questions about their orders.",
        http,
        heartbeat: { every: "30m" },
        skills: ["*"],
      },
      review: { backend: "http", description: "Reads every push to the main branch.", http },
      "on-call": {
        backend: "http",
        description: "Watches deploys and incidents.",
        http,
        heartbeat: { every: "10m" },
        skills: ["*"],
      },
      translate: { backend: "http", description: "Translates replies into the customer's language.", http },
    },
    skills: { dirs: [join(folder, "skills")] },
  };
  return {
    config,
    fill,
    async [Symbol.asyncDispose]() {
      agents.closeAllConnections();
      agents.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function push(branch: string) {
  return JSON.stringify({
    ref: `refs/heads/${branch}`,
    before: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
    after: "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5",
    repository: { id: 35129377, full_name: "acme/checkout", private: true },
    pusher: { name: "ada", email: "ada@example.com" },
    head_commit: {
      id: "59b20b8d",
      message: "Sweep by the monotonic clock",
      added: ["test/sweeps.test.ts"],
      removed: [],
      modified: ["src/sweeps.ts"],
    },
  });
}

/** Fills a gateway with a morning's work, and leaves a turn running and an event waiting. */
async function fill(gateway: { url: string }): Promise<void> {
  const { rest, hook, stranger, rpc } = callers(gateway);
  const github = (body: string, secret = GITHUB_SECRET) =>
    stranger("/hooks/github-push", body, {
      "x-github-event": "push",
      "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    });
  for (const message of ["Where is my order 4711?", "Can I still change the address?", "Great, thank you!"])
    await rest("/api/v1/chat/send", { message, user_id: "ada" });
  await rest("/api/v1/chat/send", { message: "Do you deliver to Norway?", user_id: "linus" });
  await hook("/hooks/invoices", {
    type: "invoice.paid",
    data: { object: { id: "in_1PxK", amount_paid: 4900, currency: "eur" } },
  });
  await github(push("main"));
  await hook("/hooks/deploys", {
    kind: "deploy",
    environment: "production",
    service: "checkout",
    version: "2026.11.24-1",
    by: { name: "grace" },
  });
  await hook("/hooks/deploys", {
    kind: "deploy",
    environment: "staging",
    service: "checkout",
    version: "2026.11.24-2",
    by: { name: "grace" },
  });
  await hook("/hooks/agent", {
    message: "Summarise the incident INC-204",
    session: "webhook:inc-204",
    agent: "on-call",
  });
  await rpc("agent.sendMessage", { agentName: "on-call", message: "Any incident tonight?", wait: true });
  await hook("/hooks/wake", { text: "The nightly build is green.", agent: "on-call", mode: "now" });
  await hook("/hooks/wake", { text: "Stock of SKU 88-12 fell below 20.", metadata: { sku: "88-12", left: 17 } });
  await github(push("main"), "the-secret-of-somebody-else");
  await stranger("/hooks/wake", { text: "let me in" });
  void rest("/api/v1/chat/send", { message: "Translate this: overloaded", agent: "translate", user_id: "mira" });
  void rest("/api/v1/chat/send", {
    message: "Write the release notes, slowly",
    agent: "review",
    user_id: "grace",
  }).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 2_500));
}
