import github from "@octokit/webhooks-examples";

// Payloads of real senders. GitHub's are the examples of its own package; the others are ours, in the documented format of each sender.

type Body = Record<string, unknown>;

/** The examples of one of GitHub's events, all in its package. */
export function githubExamples(event: string): Body[] {
  return (github as unknown as { name: string; examples: Body[] }[]).find(({ name }) => name === event)?.examples ?? [];
}

/** GitHub's headers, except id and signature. */
export function githubHeaders(event: string): Record<string, string> {
  return {
    accept: "*/*",
    "content-type": "application/json",
    "user-agent": "GitHub-Hookshot/044aadd",
    "x-github-event": event,
    "x-github-hook-id": "292430182",
    "x-github-hook-installation-target-id": "79929171",
    "x-github-hook-installation-target-type": "repository",
  };
}

export const stripeHeaders = {
  accept: "*/*; q=0.5, application/xml",
  "cache-control": "no-cache",
  "content-type": "application/json; charset=utf-8",
  "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
};

/** In Stripe's documented format of an event about an invoice. */
export const stripeInvoicePaid = {
  id: "evt_1SVt3vB7WZ01zgkWxA9dVhDk",
  object: "event",
  api_version: "2025-10-29.clover",
  created: 1763711671,
  data: {
    object: {
      id: "in_1SVt3rB7WZ01zgkWb1cJq2Lm",
      object: "invoice",
      account_country: "DE",
      amount_due: 4900,
      amount_paid: 4900,
      amount_remaining: 0,
      attempt_count: 1,
      attempted: true,
      billing_reason: "subscription_cycle",
      collection_method: "charge_automatically",
      created: 1763711667,
      currency: "eur",
      customer: "cus_TSjN0xQkR2sVb7",
      customer_email: "ada@example.com",
      customer_name: "Ada Lovelace",
      description: null,
      hosted_invoice_url: "https://invoice.stripe.com/i/acct_1B7WZ01zgkW/live_YWNjdF8x",
      lines: {
        object: "list",
        data: [
          {
            id: "il_1SVt3rB7WZ01zgkWc4sPv9Xy",
            object: "line_item",
            amount: 4900,
            currency: "eur",
            description: "1 × Team (at €49.00 / month)",
            quantity: 1,
          },
        ],
        has_more: false,
        url: "/v1/invoices/in_1SVt3rB7WZ01zgkWb1cJq2Lm/lines",
      },
      livemode: true,
      metadata: {},
      number: "8F1C2A7B-0042",
      period_end: 1763711667,
      period_start: 1761033267,
      status: "paid",
      status_transitions: {
        finalized_at: 1763711669,
        marked_uncollectible_at: null,
        paid_at: 1763711670,
        voided_at: null,
      },
      subtotal: 4900,
      total: 4900,
    },
  },
  livemode: true,
  pending_webhooks: 1,
  request: { id: null, idempotency_key: null },
  type: "invoice.paid",
};

export const slackHeaders = {
  accept: "*/*",
  "content-type": "application/json",
  "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
};

/** In the documented format of Slack's Events API. */
export const slackMention = {
  token: "z26uFbvR1xHJEdHE1OQiO6t8",
  team_id: "T123ABC456",
  api_app_id: "A123ABC456",
  event: {
    type: "app_mention",
    user: "U061F7AUR",
    text: "<@U0LAN0Z89> is the build green?",
    ts: "1763711671.000100",
    channel: "C123ABC456",
    event_ts: "1763711671.000100",
  },
  type: "event_callback",
  event_id: "Ev123ABC456",
  event_time: 1763711671,
  authorizations: [
    { enterprise_id: null, team_id: "T123ABC456", user_id: "U0LAN0Z89", is_bot: true, is_enterprise_install: false },
  ],
  is_ext_shared_channel: false,
  event_context: "4-eyJldCI6ImFwcF9tZW50aW9uIn0",
};

export const slackChallenge = {
  token: "z26uFbvR1xHJEdHE1OQiO6t8",
  challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
  type: "url_verification",
};

export const grafanaHeaders = { "content-type": "application/json", "user-agent": "Grafana" };

/** In the documented format of Grafana's webhook contact point. */
export const grafanaFiring = {
  receiver: "agent gateway",
  status: "firing",
  orgId: 1,
  alerts: [
    {
      status: "firing",
      labels: { alertname: "DiskFull", grafana_folder: "Databases", instance: "db-1" },
      annotations: { summary: "The disk of db-1 is nearly full." },
      startsAt: "2026-11-21T08:54:31Z",
      endsAt: "0001-01-01T00:00:00Z",
      generatorURL: "https://grafana.example.com/alerting/grafana/cdeqmlhvflz40f/view",
      fingerprint: "c6eadffa33fcdf37",
      silenceURL: "https://grafana.example.com/alerting/silence/new?alertmanager=grafana",
      dashboardURL: "",
      panelURL: "",
      values: { B: 95.2, C: 1 },
      valueString: "[ var='B' labels={instance=db-1} value=95.2 ]",
    },
  ],
  groupLabels: { alertname: "DiskFull" },
  commonLabels: { alertname: "DiskFull", grafana_folder: "Databases", instance: "db-1" },
  commonAnnotations: { summary: "The disk of db-1 is nearly full." },
  externalURL: "https://grafana.example.com/",
  version: "1",
  groupKey: '{}:{alertname="DiskFull"}',
  truncatedAlerts: 0,
  title: "[FIRING:1] DiskFull (Databases db-1)",
  state: "alerting",
  message: "**Firing**\n\nValue: B=95.2, C=1\nLabels:\n - alertname = DiskFull\n",
};

/** In the format that the Standard Webhooks specification recommends. */
export const userCreated = {
  type: "user.created",
  timestamp: "2026-11-21T08:54:31.123456Z",
  data: { id: "1f81eb52-5198-4599-803e-771906343485", name: "Ada Lovelace", email: "ada@example.com" },
};

export const formHeaders = { accept: "application/json,*/*", "content-type": "application/x-www-form-urlencoded" };

/** In Slack's documented format of a slash command. */
export const slackCommand = {
  token: "gIkuvaNzQIHg97ATvDxqgjtO",
  team_id: "T123ABC456",
  team_domain: "example",
  channel_id: "C123ABC456",
  channel_name: "builds",
  user_id: "U061F7AUR",
  user_name: "ada",
  command: "/ask",
  text: "is the build green? 100% & a+b=c; ünsure",
  api_app_id: "A123ABC456",
  is_enterprise_install: "false",
  response_url: "https://hooks.slack.com/commands/T123ABC456/400700886/1zo8SgcVYUW4qLCCfqGAYu8q",
  trigger_id: "13345224609.738474920.8088930838d88f008e0",
};

/** In Slack's documented format of a press of a button; its form has it as JSON in `payload`. */
export const slackButton = {
  type: "block_actions",
  user: { id: "U061F7AUR", username: "ada", name: "ada", team_id: "T123ABC456" },
  api_app_id: "A123ABC456",
  token: "gIkuvaNzQIHg97ATvDxqgjtO",
  container: {
    type: "message",
    message_ts: "1763711672.000200",
    channel_id: "C123ABC456",
    is_ephemeral: false,
    thread_ts: "1763711671.000100",
  },
  trigger_id: "12466734323.1395872398.8d1b7d1a7d1f0b1c4f6e",
  team: { id: "T123ABC456", domain: "example" },
  enterprise: null,
  is_enterprise_install: false,
  channel: { id: "C123ABC456", name: "builds" },
  message: {
    type: "message",
    user: "U0LAN0Z89",
    bot_id: "B123ABC456",
    ts: "1763711672.000200",
    text: "Deploy 4.2 to production?",
    thread_ts: "1763711671.000100",
  },
  state: { values: {} },
  response_url: "https://hooks.slack.com/actions/T123ABC456/401204545/AbCdEf",
  actions: [
    {
      action_id: "approve",
      block_id: "deploy",
      text: { type: "plain_text", text: "Approve", emoji: true },
      value: "deploy 4.2",
      style: "primary",
      type: "button",
      action_ts: "1763711675.000300",
    },
  ],
};

export const linearHeaders = {
  "accept-charset": "utf-8",
  "content-type": "application/json; charset=utf-8",
  "linear-event": "Issue",
  "user-agent": "Linear-Webhook",
};

/** In Linear's documented format of a data change event, at this time. */
export function linearIssue() {
  return {
    action: "create",
    actor: {
      id: "b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba",
      name: "Ada Lovelace",
      email: "ada@example.com",
      url: "https://linear.app/example/profiles/ada",
      type: "user",
    },
    createdAt: "2026-11-21T08:54:31.084Z",
    data: {
      id: "2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9",
      createdAt: "2026-11-21T08:54:31.084Z",
      updatedAt: "2026-11-21T08:54:31.084Z",
      number: 42,
      title: "The clock is late",
      priority: 2,
      sortOrder: -86.81,
      teamId: "72b2a2dc-6f4f-4423-9d34-24b5bd10634a",
      stateId: "c02edc3a-e08d-4137-8d39-85c349766a13",
      creatorId: "b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba",
      previousIdentifiers: [],
      labelIds: [],
      priorityLabel: "High",
      identifier: "CLK-42",
      url: "https://linear.app/example/issue/CLK-42/the-clock-is-late",
      description: "By a minute a day.",
      state: { id: "c02edc3a-e08d-4137-8d39-85c349766a13", name: "Backlog", color: "#bec2c8", type: "backlog" },
      team: { id: "72b2a2dc-6f4f-4423-9d34-24b5bd10634a", key: "CLK", name: "Clocks" },
      labels: [],
    },
    url: "https://linear.app/example/issue/CLK-42/the-clock-is-late",
    type: "Issue",
    organizationId: "0172d0e2-da20-4ffb-9e8f-9c8a0f7d4f0e",
    webhookTimestamp: Date.now(),
    webhookId: "000042e3-d123-4980-b49f-8e140eef9329",
  };
}

export const twilioHeaders = {
  accept: "*/*",
  "content-type": "application/x-www-form-urlencoded; charset=UTF-8",
  "user-agent": "TwilioProxy/1.1",
};

/** In Twilio's documented format of an incoming message. */
export const twilioSms = {
  ToCountry: "US",
  ToState: "CA",
  SmsMessageSid: "SM1f0e8ae6ade43cb3c0ce4525424e404f",
  NumMedia: "0",
  ToCity: "",
  FromZip: "94105",
  SmsSid: "SM1f0e8ae6ade43cb3c0ce4525424e404f",
  FromState: "CA",
  SmsStatus: "received",
  FromCity: "SAN FRANCISCO",
  Body: "Is my parcel here? 100% sure & ünsure + more",
  FromCountry: "US",
  To: "+14155551234",
  ToZip: "",
  NumSegments: "1",
  MessageSid: "SM1f0e8ae6ade43cb3c0ce4525424e404f",
  AccountSid: "ACd8a1e2c3b4f5a6978877665544332211",
  From: "+14155550100",
  ApiVersion: "2010-04-01",
};
