import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import type { Place } from "./contract.ts";
import { SECRETS, type SomeConfig, type TestGateway } from "./gateway.ts";
import { CERTIFICATE, OVER_TLS, openHttp2 } from "./http2.ts";
import { settling } from "./ledger.ts";
import { type Connection, openConnection, requestText } from "./raw.ts";
import { checkReply, type Reply } from "./rest.ts";

export type HookSending = {
  /** Null sends no token. */
  token?: string | null;
  /** In addition to the usual ones, or instead of them; null omits one. */
  headers?: Record<string, string | null>;
  method?: string;
  /** Nothing is served there: the reply belongs to no operation. */
  nowhere?: boolean;
};

type Sent = { method: string; path: string; headers: Record<string, string>; body: string | Uint8Array };

/** The path of webhooks in the contract; a gateway may have another one. */
const CONTRACT_PATH = "/hooks";

function sentOf(path: string, given: unknown, sending: HookSending): Sent {
  const { token = SECRETS.webhookToken, headers = {}, method = "POST" } = sending;
  const body = typeof given === "string" || given instanceof Uint8Array ? given : JSON.stringify(given);
  const all = {
    "content-type": "application/json",
    authorization: token === null ? null : `Bearer ${token}`,
    ...headers,
  };
  const kept = Object.entries(all).filter((header): header is [string, string] => header[1] !== null);
  return { method, path, body, headers: Object.fromEntries(kept) };
}

/** A way to send webhooks. `below` is the path after the webhook path. Bytes and text are sent unchanged. */
export type HookClient = {
  send(below: string, body: unknown, sending?: HookSending): Promise<Reply>;
  wake(body: unknown, sending?: HookSending): Promise<Reply>;
  agent(body: unknown, sending?: HookSending): Promise<Reply>;
  mapped(body: unknown, sending?: HookSending): Promise<Reply>;
  named(name: string, body: unknown, sending?: HookSending): Promise<Reply>;
};

function clientOf(exchange: (sent: Sent, place: Place) => Promise<Reply>, base: string) {
  const send: HookClient["send"] = (below, body, sending = {}) => {
    const sent = sentOf(base + below, body, sending);
    return exchange(sent, { method: sent.method, path: sending.nowhere ? "/nowhere" : CONTRACT_PATH + below });
  };
  return {
    send,
    wake: (body, sending) => send("/wake", body, sending),
    agent: (body, sending) => send("/agent", body, sending),
    mapped: (body, sending) => send("", body, sending),
    named: (name, body, sending) => send(`/${name}`, body, sending),
  } satisfies HookClient;
}

/** Sends webhooks over HTTP/1.1, each on a separate connection. All replies are validated against the contract. */
export function createHooks(url: string, base = CONTRACT_PATH): HookClient {
  return clientOf(async (sent, place) => {
    await using connection = await openConnection(url);
    return await exchangeOn(connection, sent, place);
  }, base);
}

function exchangeOn(connection: Connection, sent: Sent, place: Place): Promise<Reply> {
  connection.write(requestText(sent, sent.headers, sent.body));
  return connection.reply(place);
}

type Open = (gateway: TestGateway) => Promise<HookClient & AsyncDisposable>;

/** One connection, and another one after it was closed. */
const overHttp1: Open = async ({ url }) => {
  let connection = await openConnection(url);
  let isEnding = false;
  const client = clientOf(async (sent, place) => {
    if (isEnding) {
      await connection[Symbol.asyncDispose]();
      connection = await openConnection(url);
    }
    const reply = await exchangeOn(connection, sent, place);
    isEnding = reply.headers.get("connection") === "close";
    return reply;
  }, CONTRACT_PATH);
  return { ...client, [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose]() };
};

const overHttp2: Open = async ({ url }) => {
  const http2 = await openHttp2(url);
  const exchange = (sent: Sent, place: Place) =>
    settling(async () => {
      const { status, headers, text } = await http2.exchange(sent, sent.headers, sent.body);
      return checkReply(place, status, headers, text);
    });
  const client = clientOf(exchange, CONTRACT_PATH);
  return { ...client, [Symbol.asyncDispose]: () => http2[Symbol.asyncDispose]() };
};

const overHttp1Tls: Open = async ({ url }) => {
  const exchange = ({ headers, body, ...sent }: Sent, place: Place) =>
    settling(async () => {
      const address = new URL(sent.path, url.replace("127.0.0.1", "localhost"));
      const asked = request(address, { method: sent.method, headers, ca: CERTIFICATE, agent: false });
      asked.end(body);
      const [response] = (await once(asked, "response")) as [IncomingMessage];
      const parts: Buffer[] = [];
      for await (const part of response) parts.push(part as Buffer);
      const received = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
      return checkReply(place, response.statusCode as number, received, Buffer.concat(parts).toString("utf8"));
    });
  const client = clientOf(exchange, CONTRACT_PATH);
  return { ...client, async [Symbol.asyncDispose]() {} };
};

/** The transports of webhooks by name, and the configuration of a gateway for them. */
export const hookTransports: Record<string, { open: Open; config?: SomeConfig }> = {
  "HTTP/1.1": { open: overHttp1 },
  "HTTP/1.1 over TLS": { open: overHttp1Tls, config: OVER_TLS },
  "HTTP/2 in clear text": { open: overHttp2 },
  "HTTP/2 over TLS": { open: overHttp2, config: OVER_TLS },
};
