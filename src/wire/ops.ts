import type { Caller } from "#core/call.ts";
import { GatewayError } from "#core/errors.ts";
import type { Events } from "#observe/events.ts";
import { requireTls } from "./address.ts";
import { bearerOf, type GuessGuard } from "./auth.ts";
import { sendJson, type WireCall } from "./call.ts";
import type { Served } from "./documents.ts";
import type { Door } from "./front.ts";

export type Readiness = { ready: boolean; parts: Record<string, { ok: boolean; detail?: string }> };

export type OpsParts = {
  version: string;
  uptimeMs: () => number;
  readiness: () => Promise<Readiness>;
  documents: () => Promise<Served>;
  metrics: () => string;
  metricsType: string;
  /** Who an RPC token belongs to. */
  identifyRpc: (token: string) => Extract<Caller, { surface: "rpc" }> | undefined;
  guard: GuessGuard;
  events: Events;
};

const RETRY_SECONDS = "1";

/** What operators and tools ask: life, readiness, figures, and the contract itself. */
export const createOpsDoors = (
  parts: OpsParts,
): Record<"healthz" | "readyz" | "metrics" | "openapi" | "openrpc", Door> => ({
  healthz: get("ops.healthz", (call) =>
    sendJson(call, 200, { status: "ok", version: parts.version, uptime_ms: Math.round(parts.uptimeMs()) }),
  ),
  readyz: get("ops.readyz", async (call) => {
    const state = await parts.readiness();
    sendJson(call, state.ready ? 200 : 503, state, state.ready ? {} : { "retry-after": RETRY_SECONDS });
  }),
  metrics: get("ops.metrics", (call) => {
    requireHealthPermission(parts, call);
    sendText(call, parts.metricsType, parts.metrics());
  }),
  openapi: get("ops.openapi", async (call) => sendText(call, "application/json", (await parts.documents()).openapi())),
  openrpc: get("ops.openrpc", async (call) => sendText(call, "application/json", (await parts.documents()).openrpc())),
});

const get =
  (operation: string, door: Door): Door =>
  (call) => {
    call.operation = operation;
    const { method } = call.req;
    if (method !== "GET" && method !== "HEAD") {
      throw new GatewayError("method-not-allowed", "This path takes GET.", { allow: "GET, HEAD" });
    }
    return door(call);
  };

const sendText = ({ res, requestId }: WireCall, type: string, text: string): void => {
  const headers = { "content-type": type, "content-length": Buffer.byteLength(text), "x-request-id": requestId };
  res.writeHead(200, headers).end(text);
};

const requireHealthPermission = ({ identifyRpc, guard, events }: OpsParts, call: WireCall): void => {
  requireTls(call.peer);
  const token = bearerOf(call.req);
  const caller = token === undefined ? undefined : identifyRpc(token);
  if (!caller) {
    const { error, guessing } = guard(call.peer.address);
    events.authFailed({ surface: "public", address: call.peer.address, requestId: call.requestId, logged: !guessing });
    if (guessing) call.res.setHeader("connection", "close");
    throw error;
  }
  call.caller = caller.name;
  if (!caller.permissions.includes("*") && !caller.permissions.includes("system.health")) {
    throw new GatewayError("forbidden", "The token lacks the permission system.health.");
  }
};
