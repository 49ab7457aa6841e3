import { REST_KEY, RPC_TOKEN, WEBHOOK_TOKEN } from "./gateways.ts";

/**
 * The request that a load repeats. wrk's load replaces `{session}`, `{passing}`, `{address}` and `{guess}` (see load.lua), the WebSocket's only
 * `{session}`.
 */
export type Call = { path: string; body: string; headers: Readonly<Record<string, string>> };

/** One of many sessions; one of many with a few messages each; and one for all, for a client with one body. */
const SESSION = "bench:{session}";
export const PASSING_SESSION = "bench:{passing}";
export const SAME_SESSION = "bench:one";
/** The number of digits that a load fills in. An address may have any number, so it is not used in a body. */
const DIGITS = { session: 7, passing: 7, guess: 13 };
const BODY = 200;
const TEXT = "What changed since yesterday? ".repeat(BODY / 10);

/** The length after a load has filled it in. */
function filledLength(text: string): number {
  return Object.entries(DIGITS).reduce(
    (length, [name, digits]) => length + (text.split(`{${name}}`).length - 1) * (digits - name.length - 2),
    Buffer.byteLength(text),
  );
}

/** A body of 200 bytes, with any content. */
function bodyOf(make: (message: string) => object): string {
  return JSON.stringify(make(TEXT.slice(0, BODY - filledLength(JSON.stringify(make(""))))));
}

function headersOf(token: string) {
  return { authorization: `Bearer ${token}`, "content-type": "application/json" };
}

/** A chat message; without `sessions` each opens a new session. */
export function chatCall(sessions: number): Call {
  return {
    path: "/api/v1/chat/send",
    headers: headersOf(REST_KEY),
    body: bodyOf((message) => (sessions > 0 ? { message, session_id: SESSION } : { message })),
  };
}

/** An RPC call in its envelope, on one line. */
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

/** P2's: an event with another text each time, as real senders send. */
export function wakeCall(): Call {
  return {
    path: "/hooks/wake",
    headers: headersOf(WEBHOOK_TOKEN),
    body: bodyOf((text) => ({ text: `Build {guess} failed. ${text}`, metadata: { source: "ci", event: "build" } })),
  };
}

/** A turn of a webhook, in a new session. */
export function hookTurnCall(): Call {
  return {
    path: "/hooks/agent",
    headers: headersOf(WEBHOOK_TOKEN),
    body: bodyOf((message) => ({ message: `Look at build {guess}. ${message}`, context: { region: "eu-west" } })),
  };
}

/** A call in HTTP/1.1. */
export function requestText({ path, headers, body }: Call, host: string): string {
  const all = { host, ...headers, "content-length": filledLength(body) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
