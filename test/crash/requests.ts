import { Agent, request } from "node:http";
import { type Ack, type Order, renderedOf } from "./orders.ts";

export const SECRETS = {
  key: "rest-key-of-the-crash-test",
  rpcToken: "rpc-token-of-the-crash-test",
  webhookToken: "webhook-token-of-the-crash-test",
  consoleToken: "console-token-of-the-crash-test",
  notify: `whsec_${Buffer.from("notify-secret-of-the-crash-test").toString("base64")}`,
  databasePassword: "database-password-of-the-crash-test",
} as const;

/** As configured for a database whose server requires a password; the server of the tests accepts any. */
export function withPassword(url: string): string {
  const its = new URL(url);
  its.password = SECRETS.databasePassword;
  return its.href;
}

export type Answer = { status: number; replayed: boolean; text: string };

/** There was no answer: `sent` says if the gateway may have read the request. */
export class NoAnswer extends Error {
  readonly sent: boolean;
  constructor(cause: NodeJS.ErrnoException) {
    super(cause.message, { cause });
    this.sent = cause.code !== "ECONNREFUSED";
  }
}

const MOST_SOCKETS = 256;

/** Persistent connections of a client at full speed. It repeats nothing automatically. */
export function createCaller(timeoutMs: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: MOST_SOCKETS });
  const ask = (url: string, method: string, headers: Record<string, string>, body?: string): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const call = request(url, { method, agent, headers: { ...headers, ...length }, timeout: timeoutMs });
      const fail = (error: Error) => reject(new NoAnswer(error));
      call.on("error", fail);
      call.on("timeout", () => call.destroy(new Error(`no answer within ${timeoutMs} ms`)));
      call.on("response", (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("error", fail);
        response.on("close", () => response.complete || fail(new Error("the answer was cut")));
        response.on("end", () => {
          const replayed = response.headers["idempotent-replayed"] === "true";
          resolve({ status: response.statusCode ?? 0, replayed, text: Buffer.concat(parts).toString() });
        });
      });
      call.end(body);
    });
  return { ask, close: () => agent.destroy() };
}

export type Caller = ReturnType<typeof createCaller>;

export function bearer(token: string) {
  return { authorization: `Bearer ${token}`, "content-type": "application/json" };
}

type Call = { path: string; headers: Record<string, string>; body: object };

/** The HTTP request of each kind of work. */
function callOf(order: Order): Call {
  const { kind, agent, text, sessionId, key, marker } = order;
  const hook = { headers: bearer(SECRETS.webhookToken) };
  switch (kind) {
    case "wake":
      return { ...hook, path: "/hooks/wake", body: { text, agent, metadata: { source: "crash" } } };
    case "agent":
      return {
        ...hook,
        path: "/hooks/agent",
        body: { message: text, agent, ...(sessionId && { session: sessionId }) },
      };
    case "mapped":
      return { ...hook, path: `/hooks/push-${agent}`, body: { text: text.slice(renderedOf("").length) } };
    case "burst": {
      const body = { text: text.slice(renderedOf("").length), room: sessionId?.split("-").at(-1) };
      return { ...hook, path: `/hooks/burst-${agent}`, body };
    }
    case "chat": {
      const body = { message: text, agent, ...(sessionId && { session_id: sessionId }) };
      return { path: "/api/v1/chat/send", headers: bearer(SECRETS.key), body };
    }
    case "rpc": {
      // A call without a key is sent like the others; one with a key has it in its params, if RPC has a place for it.
      const params = {
        agentName: agent,
        message: text,
        ...(sessionId && { sessionId }),
        ...(key && { idempotencyKey: key }),
      };
      const body = { jsonrpc: "2.0", id: marker, method: "agent.sendMessage", params };
      return { path: "/rpc", headers: bearer(SECRETS.rpcToken), body };
    }
  }
}

/** Sends a request once; `change` alters its text, to try its key with another body. */
export function send(caller: Caller, url: string, order: Order, change = ""): Promise<Answer> {
  const { path, headers, body } = callOf(change === "" ? order : { ...order, text: `${order.text}${change}` });
  const withKey =
    order.key !== undefined && order.kind !== "rpc" ? { ...headers, "idempotency-key": order.key } : headers;
  return caller.ask(`${url}${path}`, "POST", withKey, JSON.stringify(body));
}

export type Verdict = { is: "acknowledged"; ack: Ack; replayed: boolean } | { is: "refused" | "unknown"; why: string };

type Fields = Record<string, string | undefined>;

/** Refusals of the work itself, which must not be stored. After all other errors it may have been stored. */
const REFUSED = new Set([
  "session-busy",
  "session-full",
  "gateway-busy",
  "store-full",
  "idempotency-mismatch",
  "rate-limited",
]);

const NAMES_TURN = new Set([502, 503, 504]);

export function verdictOf({ kind }: Order, { status, replayed, text }: Answer): Verdict {
  const json = parse(text);
  if (kind === "rpc" && status === 200) {
    const { result, error } = json as {
      result?: Fields & { replayed?: boolean };
      error?: { data?: { name?: string } };
    };
    if (result) {
      const { turnId: work = "", messageId, sessionId } = result;
      return { is: "acknowledged", ack: clean({ work, messageId, sessionId }), replayed: result.replayed === true };
    }
    const why = error?.data?.name ?? text;
    return { is: REFUSED.has(why) ? "refused" : "unknown", why };
  }
  const fields = json as Fields;
  if (status === 200 || status === 202) {
    const work = fields.turn_id ?? fields.turnId ?? fields.eventId ?? "";
    const { message_id: messageId, reply } = fields;
    const sessionId = fields.session_id ?? fields.sessionId;
    return { is: "acknowledged", ack: clean({ work, messageId, sessionId, reply }), replayed };
  }
  // A failed turn is not a 2xx, but the answer names the turn, which must exist.
  if (NAMES_TURN.has(status) && fields.turn_id) return { is: "acknowledged", ack: { work: fields.turn_id }, replayed };
  const why = fields.type?.split(/[/:#]/).at(-1) ?? `${status}`;
  return { is: REFUSED.has(why) || status === 422 ? "refused" : "unknown", why: `${status} ${why}` };
}

function parse(text: string): object {
  try {
    return JSON.parse(text) as object;
  } catch {
    return {};
  }
}

function clean(ack: { work: string } & { [Key in keyof Ack]: Ack[Key] | undefined }): Ack {
  return Object.fromEntries(Object.entries(ack).filter(([, value]) => value !== undefined)) as Ack;
}
