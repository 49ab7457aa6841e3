import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export const SECRETS = {
  key: "rest-key-of-the-upgrade-fixture",
  rpcToken: "rpc-token-of-the-upgrade-fixture",
  webhookToken: "webhook-token-of-the-upgrade-fixture",
  consoleToken: "console-token-of-the-upgrade-fixture",
} as const;

/** The marks in texts: a turn with the first gets no answer while the service holds, a turn with the second fails. */
export const HOLD = "[hold]";
export const FAIL = "[fail]";

/** The configuration of the gateways that fill and upgrade the stores. */
export function configOf(service: string, store: object): object {
  const http = (path = "/agent") => ({ backend: "http", http: { url: `${service}${path}` } });
  const off = { heartbeat: { every: "off" } };
  const channel = (name: string) => ({
    type: "webhook",
    url: `${service}/channel/${name}`,
    secret: "channel-secret-of-the-upgrade-fixture",
  });
  const unlimited = { maxRequests: 0 };
  return {
    gateway: {
      defaultAgent: "main",
      announceTo: "ops",
      rest: {
        auth: { keys: [{ name: "fixture", key: SECRETS.key, scopes: ["chat", "admin"] }] },
        rateLimit: unlimited,
      },
      rpc: { auth: { tokens: [{ name: "fixture", token: SECRETS.rpcToken, permissions: "*" }] }, rateLimit: unlimited },
      console: { token: SECRETS.consoleToken },
    },
    webhooks: {
      token: SECRETS.webhookToken,
      rateLimit: unlimited,
      mappings: {
        alert: {
          match: { "body.status": "firing" },
          message: "Look at {body.title}",
          session: "webhook:alerts",
          delivery: "announce",
          channel: "ops",
        },
      },
    },
    channels: { ops: channel("ops"), busy: channel("busy"), stuck: channel("stuck"), gone: channel("gone") },
    agents: {
      main: { ...http(), heartbeat: { every: "12h" } },
      single: { ...http(), ...off, concurrency: 1 },
      paused: { ...http(), heartbeat: { every: "1h" } },
      watch: { ...http(), heartbeat: { every: "1h" } },
      full: { ...http(), ...off },
      broken: { ...http("/broken"), heartbeat: { every: "12h" } },
    },
    sessions: { retention: "365d", webhookRetention: "365d", eventRetention: "365d" },
    limits: { turnsPerSession: 4 },
    recorder: { entries: 160 },
    store,
  };
}

export type Call = { kind: string; agent: string; turnId: string | null; sessionId: string | null; text: string };

/** The agents and the channels of the configuration, as one web service. */
export async function startService() {
  const calls: Call[] = [];
  const announced: { channel: string; turnId: string; status: number }[] = [];
  const held: (() => void)[] = [];
  let holds: (what: string) => boolean = () => false;
  let isRepaired = false;
  const answer = (response: ServerResponse, status: number, body: object) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  const onTurn = async (path: string, request: IncomingMessage, response: ServerResponse) => {
    const { kind, agent, turnId, sessionId, message, history } = JSON.parse(await text(request));
    calls.push({ kind, agent, turnId, sessionId, text: message.text });
    const reply = () => {
      const usage = { input: 10, output: 5, cached: 3, reasoning: 2 };
      if (kind === "summarise") return answer(response, 200, { summary: `A summary of ${history.length}.`, usage });
      if ((path === "/broken" || message.text.includes(FAIL)) && !isRepaired)
        return answer(response, 422, { title: "Broken", detail: "The agent is broken." });
      answer(response, 200, { reply: `Reply to ${message.text}`, usage, model: "a-model" });
    };
    if (holds(kind === "summarise" ? "" : message.text)) held.push(reply);
    else reply();
  };
  const onAnnouncement = async (channel: string, request: IncomingMessage, response: ServerResponse) => {
    await text(request);
    const reply = () => {
      // The gateway has closed the connection and will retry the request.
      if (request.socket.destroyed) return;
      const status = isRepaired ? 204 : ({ busy: 503, gone: 410 }[channel] ?? 204);
      announced.push({ channel, turnId: String(request.headers["webhook-id"]), status });
      response.writeHead(status).end();
    };
    if (holds(`channel ${channel}`)) held.push(reply);
    else reply();
  };
  const server = createServer((request, response) => {
    const [, kind = "", name = ""] = (request.url ?? "").split("/");
    void (kind === "channel" ? onAnnouncement(name, request, response) : onTurn(`/${kind}`, request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    announced,
    /** From now on these texts and channels (`channel <name>`) get no answer. */
    hold: (which: (what: string) => boolean) => {
      holds = which;
    },
    /** Answers all held requests, and stops holding, breaking and refusing requests. */
    repair: () => {
      isRepaired = true;
      holds = () => false;
      for (const reply of held.splice(0)) reply();
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type Service = Awaited<ReturnType<typeof startService>>;
export type Json = Record<string, unknown>;
type RequestOptions = { token?: string; body?: unknown; headers?: Record<string, string>; method?: string };

/** Calls a gateway. Answers whatever the status is. */
export async function ask(
  url: string,
  path: string,
  { token = SECRETS.key, body, headers, method }: RequestOptions = {},
) {
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  const response = await fetch(`${url}${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: (isRaw ? body : JSON.stringify(body)) as string }),
  });
  const isReplayed = response.headers.get("idempotent-replayed") === "true";
  return { status: response.status, isReplayed, text: await response.text() };
}

/** The same for a call that must be answered by this status; answers its JSON. */
export async function must(url: string, path: string, asked: RequestOptions = {}, expected = 200): Promise<Json> {
  const { status, text } = await ask(url, path, asked);
  if (status !== expected) throw new Error(`${path} answered ${status}: ${text}`);
  return text === "" ? {} : (JSON.parse(text) as Json);
}

export async function rpc(url: string, name: string, params: object = {}): Promise<Json> {
  const body = { jsonrpc: "2.0", id: 1, method: name, params };
  const { result, error } = await must(url, "/rpc", { token: SECRETS.rpcToken, body });
  if (!result) throw new Error(`${name} answered ${JSON.stringify(error)}`);
  return result as Json;
}

async function pages(read: (cursor: string | undefined) => Promise<Json>, name: string): Promise<Json[]> {
  const rows: Json[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await read(cursor);
    rows.push(...(page[name] as Json[]));
    cursor = (page.next_cursor ?? page.nextCursor ?? undefined) as string | undefined;
    if (cursor === undefined) return rows;
  }
}

const ENDED = new Set(["completed", "failed", "cancelled"]);

/** Reads everything in the store through the gateway's API. */
export async function readAll(url: string) {
  const list = (path: string, name: string, token: string = SECRETS.key) =>
    pages(
      (cursor) =>
        must(url, `/api/v1${path}?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`, { token }),
      name,
    );
  const each = async (rows: readonly Json[], id: string, read: (id: string) => Promise<unknown>) =>
    Object.fromEntries(await Promise.all(rows.map(async (row) => [row[id], await read(row[id] as string)])));
  const turns = await list("/turns", "turns");
  const sessions = await pages(
    (cursor) => rpc(url, "session.list", { limit: 100, ...(cursor && { cursor }) }),
    "sessions",
  );
  const deliveries = await list("/deliveries", "deliveries");
  const agents = (await rpc(url, "agent.list")).agents as Json[];
  return {
    turns: await each(turns, "turn_id", (id) => must(url, `/api/v1/turns/${id}`)),
    // The stream of an ended turn ends.
    turnEvents: await each(
      turns.filter(({ status }) => ENDED.has(status as string)),
      "turn_id",
      async (id) => (await ask(url, `/api/v1/turns/${id}/events`)).text,
    ),
    sessions: Object.fromEntries(sessions.map((session) => [session.sessionId, session])),
    messages: await each(sessions, "sessionId", (sessionId) =>
      pages(
        (cursor) =>
          rpc(url, "session.get", { sessionId, limit: 100, includeCompacted: true, ...(cursor && { cursor }) }),
        "messages",
      ),
    ),
    events: Object.fromEntries((await list("/events", "events")).map((event) => [event.event_id, event])),
    deliveries: await each(deliveries, "delivery_id", (id) => must(url, `/api/v1/deliveries/${id}`)),
    agents: Object.fromEntries(agents.map((agent) => [agent.agentName, agent])),
    keys: await list("/keys", "keys", SECRETS.consoleToken),
    usage: await rpc(url, "usage.stats", { from: "2026-01-01T00:00:00.000Z", groupBy: "token" }),
  };
}

export type Answers = Awaited<ReturnType<typeof readAll>>;
