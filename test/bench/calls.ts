import { REST_KEY, RPC_TOKEN, WEBHOOK_TOKEN } from "./gateways.ts";

/**
 * The request that a load repeats. In it wrk's load fills in `{session}`, `{passing}`, `{address}` and `{guess}` (see load.lua), the
 * WebSocket's only `{session}`.
 */
export type Call = { path: string; body: string; headers: Readonly<Record<string, string>> };

/** One of many sessions; one of many of which each has a few messages only; and one for all, for a client that has one body. */
const SESSION = "bench:{session}";
export const PASSING_SESSION = "bench:{passing}";
export const SAME_SESSION = "bench:one";
/** How many digits a load fills in. That of an address may be any number, so that it is none for a body. */
const DIGITS = { session: 7, passing: 7, guess: 13 };
const BODY = 200;
const TEXT = "What changed since yesterday? ".repeat(BODY / 10);

/** As long as it is when a load has filled it in. */
function filledLength(text: string): number {
  return Object.entries(DIGITS).reduce(
    (length, [name, digits]) => length + (text.split(`{${name}}`).length - 1) * (digits - name.length - 2),
    Buffer.byteLength(text),
  );
}

/** A body of 200 bytes, whatever else is in it. */
function bodyOf(make: (message: string) => object): string {
  return JSON.stringify(make(TEXT.slice(0, BODY - filledLength(JSON.stringify(make(""))))));
}

function headersOf(token: string) {
  return { authorization: `Bearer ${token}`, "content-type": "application/json" };
}

/** A chat message; without `sessions` each opens its own. */
export function chatCall(sessions: number): Call {
  return {
    path: "/api/v1/chat/send",
    headers: headersOf(REST_KEY),
    body: bodyOf((message) => (sessions > 0 ? { message, session_id: SESSION } : { message })),
  };
}

/** A call of RPC as its envelope, on a line. */
function envelopeOf(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
}

export function rpcCall(method: string, params: object): Call {
  return {
    path: "/rpc",
    headers: headersOf(RPC_TOKEN),
    body: envelopeOf(method, params),
  };
}

export function statusCall(): Call {
  return rpcCall("agent.status", { agentName: "main" });
}

/** P1's: a message to one of many sessions. */
export function messageCall(sessionId = SESSION): Call {
  const params = (message: string) => ({ agentName: "main", message, sessionId });
  const envelope = (message: string) => JSON.parse(envelopeOf("agent.sendMessage", params(message))) as object;
  return { ...rpcCall("agent.sendMessage", {}), body: bodyOf(envelope) };
}

/** P2's: an event of which the sender says something else each time, as senders do. */
export function wakeCall(): Call {
  return {
    path: "/hooks/wake",
    headers: headersOf(WEBHOOK_TOKEN),
    body: bodyOf((text) => ({ text: `Build {guess} failed. ${text}`, metadata: { source: "ci", event: "build" } })),
  };
}

/** A turn that a webhook asks for, in a session of its own. */
export function hookTurnCall(): Call {
  return {
    path: "/hooks/agent",
    headers: headersOf(WEBHOOK_TOKEN),
    body: bodyOf((message) => ({ message: `Look at build {guess}. ${message}`, context: { region: "eu-west" } })),
  };
}

/** A call as it goes over the wire in HTTP/1.1. */
export function requestText({ path, headers, body }: Call, host: string): string {
  const all = { host, ...headers, "content-length": filledLength(body) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
