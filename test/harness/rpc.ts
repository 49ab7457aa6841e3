import { once } from "node:events";
import { WebSocket } from "ws";
import type { RpcMethod, RpcMethods } from "#generated/rpc-types.ts";
import { createQueue } from "./backends.ts";
import { mediaOf } from "./contract.ts";
import { SECRETS, type SomeConfig, type TestGateway } from "./gateway.ts";
import { CERTIFICATE, OVER_TLS, openHttp2 } from "./http2.ts";
import { exchange, openConnection, requestText } from "./raw.ts";
import { ContractFault, type Reply } from "./rest.ts";
import { isAnsweredText, type RpcAnswer, textFaults } from "./rpc-contract.ts";

export const RPC = { method: "POST", path: "/rpc" } as const;

type RpcSending = { token?: string | null; headers?: Record<string, string> };

/** A text for the dispatcher and its answer; `text` is undefined without an answer. */
export type RpcReply = { status?: number; text: string | undefined };

/** A transport to the dispatcher. Every fixture is sent on each of them. */
export type Transport = AsyncDisposable & { send(text: string | Buffer): Promise<RpcReply> };

/** Calls over HTTP/1.1, each on a separate connection. All answers are validated, results against their method. */
export function createRpc(url: string, ownToken: string = SECRETS.rpcToken) {
  const send = async (body: unknown, { token = ownToken, headers = {} }: RpcSending = {}): Promise<Reply> => {
    const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    const all = {
      "content-type": "application/json",
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...headers,
    };
    const reply = await exchange(url, RPC, all, text);
    if (mediaOf(reply.headers) === "application/json") checkAnswer(text, reply.text);
    return reply;
  };
  return {
    send,
    /** One call; resolves with its answer, success or error. */
    call: async <Method extends RpcMethod>(
      method: Method,
      params: RpcMethods[Method]["sent"] | Record<string, unknown> = {},
      sending: RpcSending = {},
    ) => {
      const { json } = await send({ jsonrpc: "2.0", id: 1, method, params }, sending);
      return json as unknown as RpcAnswer & { result: RpcMethods[Method]["result"] };
    },
  };
}

export type Rpc = ReturnType<typeof createRpc>;

/** Validates the answers to a request. */
function checkAnswer(sent: string | Buffer, answer: string | undefined): void {
  const faults = answer === undefined ? [] : textFaults(answer, sent.toString());
  if (faults.length > 0) throw new ContractFault(faults);
}

type Open = (gateway: TestGateway, token: string, headers?: Record<string, string>) => Promise<Transport>;

function headersOf(token: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    ...more,
  };
}

/** One connection, and another one after it was closed. */
const overHttp1: Open = async ({ url }, token, more) => {
  let connection = await openConnection(url);
  return {
    async send(text) {
      if (connection.socket.closed || connection.socket.readableEnded) connection = await openConnection(url);
      connection.write(requestText(RPC, headersOf(token, more), text));
      const reply = replyOf(await connection.reply(RPC));
      checkAnswer(text, reply.text);
      return reply;
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
};

const overHttp2: Open = async ({ url }, token, more) => {
  const client = await openHttp2(url);
  return {
    async send(text) {
      const reply = replyOf(await client.send(RPC, headersOf(token, more), text));
      checkAnswer(text, reply.text);
      return reply;
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
};

function replyOf({ status, text }: Reply): RpcReply {
  return { status, text: status === 204 ? undefined : text };
}

const overWebSocket: Open = async ({ url }, token, more) => {
  const options = { headers: headersOf(token, more), ca: CERTIFICATE };
  const socket = new WebSocket(`${url.replace(/^http/, "ws").replace("127.0.0.1", "localhost")}/rpc/ws`, options);
  const closed = new Promise((resolve) => socket.on("close", resolve));
  const answers = createQueue<string>();
  socket.on("message", (data) => {
    const text = String(data);
    if (!("method" in JSON.parse(text))) answers.put(text);
  });
  await once(socket, "open");
  let last = 0;
  return {
    async send(text) {
      socket.send(text, { binary: false });
      if (isAnsweredText(text.toString())) {
        const answer = await answers.take();
        checkAnswer(text, answer);
        return { text: answer };
      }
      // The answer to the next call shows that this one had no answer.
      const id = `after-${++last}`;
      socket.send(JSON.stringify({ jsonrpc: "2.0", method: "get_data", id }));
      const next = await answers.take();
      return { text: JSON.parse(next).id === id ? undefined : next };
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      await closed;
    },
  };
};

/** The transports to the dispatcher by name, and the configuration of a gateway for them. */
export const transports: Record<string, Way> = {
  "HTTP/1.1": { open: overHttp1 },
  "HTTP/2 in clear text": { open: overHttp2 },
  "HTTP/2 over TLS": { open: overHttp2, config: OVER_TLS },
  WebSocket: { open: overWebSocket },
  "WebSocket over TLS": { open: overWebSocket, config: OVER_TLS },
};

export type Way = { config?: SomeConfig; open: Open };
