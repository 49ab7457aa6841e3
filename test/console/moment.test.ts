import { expect, it } from "vitest";
import { markdownOf } from "#console/lib/moment.ts";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";

const DELIVERY: Delivery = {
  delivery_id: "dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
  at: "2026-11-21T08:54:31.123Z",
  surface: "hooks",
  operation: "hooks.agent",
  method: "POST",
  path: "/hooks/agent",
  address: "192.0.2.30",
  request_id: "req_01M7YN0XENT4B8QX6R1HY5ZC3K",
  caller: "shared",
  bytes: 40,
  outcome: "failed",
  status: 200,
  mapping: null,
  replay_of: null,
  sender_id: null,
  agent: "main",
  message_id: null,
  session_id: null,
  turn_id: null,
  event_id: null,
  preview: "a `quoted` ``` word",
  reply_preview: null,
  ended_at: null,
  tokens: null,
  announcement: { channel: "ops", state: "failed", reason: "HTTP 410" },
  error: { name: "turn-failed", detail: null },
  headers: { "content-type": "application/json" },
  body: '{"message":"```\\n<b>|"}',
  body_encoding: "utf-8",
  replayable: true,
  timeline: [
    { at: "2026-11-21T08:54:31.123Z", name: "request.received", detail: null },
    { at: "2026-11-21T08:54:31.190Z", name: "turn.failed", detail: { error: "a|b" } },
  ],
};

it("a request is copied as Markdown, and nothing in it ends its code blocks", () => {
  const text = markdownOf(DELIVERY, "http://localhost:18789");
  expect(text).toContain("### `POST /hooks/agent`");
  expect(text).toContain("- Message: ```` a `quoted` ``` word ````");
  expect(text).toContain("- Channel: `ops, failed, HTTP 410`");
  expect(text).toContain('| +67 ms | turn.failed | `{"error":"a\\|b"}` |');
  expect(text).toContain('````json\n{\n  "message": "```\\n<b>|"\n}\n````');
  expect(text).toContain("$WEBHOOK_TOKEN");
  expect(text).toContain("http://localhost:18789/console/d/dlv_01M7YN0XENG6PX2VW8BN0JQS4T");
});
