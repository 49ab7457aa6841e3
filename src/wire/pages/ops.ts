import { createHash } from "node:crypto";
import type { Caller } from "#core/call.ts";
import { GatewayError } from "#kit/errors.ts";
import { requireAllAgents } from "#kit/reach.ts";
import { authenticate } from "#wire/call/auth.ts";
import { sendJson, sendJsonText, type WireCall } from "#wire/call/call.ts";
import { varyBy } from "#wire/call/compress.ts";
import type { Door } from "#wire/call/front.ts";
import { sendBody } from "#wire/call/problem.ts";
import type { Documents } from "./documents.ts";
import { requireGet } from "./files.ts";
import { indexOf, indexPageOf, type Served, wantsPage } from "./index-page.ts";

export type Readiness = { ready: boolean; parts: Record<string, { ok: boolean; detail?: string }> };

type OpsParts = {
  version: string;
  uptimeMs: () => number;
  readiness: () => Promise<Readiness>;
  documents: () => Promise<Documents>;
  /** The address at which the caller finds a surface. */
  servedAt: (call: WireCall, surface: "rest" | "rpc") => string;
  metrics: () => Promise<string>;
  metricsType: string;
  /** The owner of an RPC token, by its hash. */
  identifyRpc: (hash: Buffer) => Extract<Caller, { surface: "rpc" }> | undefined;
};

const RETRY_SECONDS = "1";
const METRICS_TAKES =
  "`/metrics` takes an RPC token with the permission `system.health`: `Authorization: Bearer <token>`.";

/** The doors for operators and tools: life, readiness, figures, and the contract itself. */
export function createOpsDoors(parts: OpsParts): Record<
  "healthz" | "readyz" | "metrics" | "openapi" | "openrpc",
  Door
> & {
  /** The door of a listener that serves this. */
  index: (served: Served) => Door;
} {
  return {
    index: (served) =>
      get("ops.index", (call) => {
        if (call.path !== "/") throw new GatewayError("not-found", "Nothing is served at this path.");
        const isPage = wantsPage(call.req.headers.accept);
        call.res.setHeader("vary", varyBy(call.res, "Accept"));
        return isPage ? sendPage(call, indexPageOf(served)) : sendJson(call, 200, indexOf(served));
      }),
    healthz: get("ops.healthz", (call) =>
      sendJson(call, 200, { status: "ok", version: parts.version, uptime_ms: Math.round(parts.uptimeMs()) }),
    ),
    readyz: get("ops.readyz", async (call) => {
      const state = await parts.readiness();
      const text = call.parts.hideInJson(JSON.stringify(state));
      return sendJsonText(call, state.ready ? 200 : 503, text, state.ready ? {} : { "retry-after": RETRY_SECONDS });
    }),
    metrics: get("ops.metrics", async (call) => {
      requireHealthPermission(parts, call);
      sendText(call, parts.metricsType, call.parts.hideInJson(await parts.metrics()));
    }),
    openapi: get("ops.openapi", async (call) => {
      const { openapi } = await parts.documents();
      return sendJsonText(call, 200, openapi(parts.servedAt(call, "rest")));
    }),
    openrpc: get("ops.openrpc", async (call) => {
      const { openrpc } = await parts.documents();
      return sendJsonText(call, 200, openrpc(parts.servedAt(call, "rpc")));
    }),
  };
}

function get(operation: string, door: Door): Door {
  return (call) => {
    call.line.reached(operation);
    requireGet(call);
    return door(call);
  };
}

function sendText({ res, requestId }: WireCall, type: string, text: string | Buffer): void {
  sendBody(res, 200, { "content-type": type, "x-request-id": requestId }, text);
}

/** A page that runs nothing, loads nothing, and stands in no other page's frame: its own style is all it may use. */
function sendPage(call: WireCall, html: string): void {
  const style = /<style>([\s\S]*?)<\/style>/.exec(html)?.[1] ?? "";
  const rules = [
    "default-src 'none'",
    `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  call.res.setHeader("content-security-policy", rules.join("; "));
  call.res.setHeader("referrer-policy", "no-referrer");
  sendText(call, "text/html; charset=utf-8", html);
}

function requireHealthPermission(parts: OpsParts, call: WireCall): void {
  const caller = authenticate(call, parts.identifyRpc, METRICS_TAKES);
  const { name, permissions } = caller;
  call.line.authenticated(name);
  if (!permissions.includes("*") && !permissions.includes("system.health"))
    throw new GatewayError("forbidden", "The token lacks the permission system.health.");
  requireAllAgents(caller, "the metrics");
}
