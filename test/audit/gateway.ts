import { once } from "node:events";
import { connect } from "node:http2";
import { text as textOf } from "node:stream/consumers";
import { WebSocket } from "ws";
import { errorNameOf, faultsOf, mediaOf, type Place, type Problem } from "#test/harness/contract.ts";
import { type RpcAnswer, textFaults } from "#test/harness/rpc-contract.ts";

/** A running gateway, and the tokens for its surfaces. */
export type Target = {
  url: string;
  rpcUrl: string;
  /** With the path of webhooks. */
  hooksUrl: string;
  key: string;
  rpcToken: string;
  webhookToken: string;
};

export type Answer = { status: number; json: Record<string, unknown> | undefined; error: string | undefined };
/** An answer of RPC with its HTTP status. */
export type RpcReply = RpcAnswer & { httpStatus: number };
type Tokens = { bearer?: string | null; ownHeader?: string };
type Push = { method: string; params: Record<string, unknown> };

const WAIT_MS = 60_000;
const LONGEST_PAUSE_S = 65;
async function within<T>(promise: Promise<T>, words: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${words} within ${WAIT_MS / 1_000} s`)), WAIT_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export type Gateway = ReturnType<typeof createGateway>;

/** A client that validates every reply against the contract. A proxy on the way may add headers, and nothing else. */
export function createGateway(target: Target, say: (line: string) => void) {
  const { url, rpcUrl, hooksUrl, key, rpcToken, webhookToken } = target;

  const hold = (faults: readonly string[]): void => {
    const found = faults.filter((fault) => !fault.endsWith(" is not in the contract"));
    if (found.length > 0) throw new Error(found.join("; "));
  };

  const exchange = async (address: string, init: RequestInit, isPatient: boolean): Promise<Response> => {
    const response = await fetch(address, { ...init, signal: AbortSignal.timeout(WAIT_MS) }).catch((error) => {
      throw new Error(`${address} did not answer: ${error.cause?.message || error.message}`);
    });
    const wait = Number(response.headers.get("retry-after"));
    if (response.status !== 429 || !isPatient || !(wait <= LONGEST_PAUSE_S)) return response;
    say(`  the gateway's limit of requests is reached: going on in ${wait} s`);
    await response.body?.cancel();
    await pause(wait * 1_000);
    return exchange(address, init, isPatient);
  };

  const isHook = (path: string): boolean => path === "/hooks" || path.startsWith("/hooks/");

  /** A request over HTTP/1.1 to a path of the contract. Text is sent unchanged, anything else as JSON. */
  const send = async (operation: string, body?: unknown, tokens: Tokens = {}, isPatient = true): Promise<Answer> => {
    const [method = "", path = ""] = operation.split(" ");
    const { bearer = isHook(path) ? webhookToken : key, ownHeader } = tokens;
    const headers = {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
      ...(ownHeader !== undefined && { "x-gateway-token": ownHeader }),
    };
    const raw = typeof body === "string" ? body : JSON.stringify(body);
    const address = isHook(path) ? hooksUrl + path.slice("/hooks".length) : url + path;
    const response = await exchange(address, { method, headers, ...(raw !== undefined && { body: raw }) }, isPatient);
    return readReply({ method, path }, response);
  };

  const readReply = async (place: Place, response: Response): Promise<Answer> => {
    const { status, headers } = response;
    const text = await response.text();
    const isStream = mediaOf(headers) === "text/event-stream";
    hold(faultsOf(place, { status, headers, body: isStream ? undefined : text }));
    const json = mediaOf(headers)?.endsWith("json") ? JSON.parse(text) : undefined;
    const error = mediaOf(headers) === "application/problem+json" ? errorNameOf(json as Problem) : undefined;
    return { status, json, error };
  };

  const answerOf = (text: string, sent: string): RpcAnswer => {
    hold(textFaults(text, sent));
    return JSON.parse(text);
  };

  const rpcHeaders = (token: string) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" });

  /** A text to /rpc over HTTP/1.1, and the answer with its status. */
  const sendRpc = async (text: string, token = rpcToken): Promise<RpcReply> => {
    const init = { method: "POST", headers: rpcHeaders(token), body: text };
    const response = await exchange(`${rpcUrl}/rpc`, init, true);
    const body = await response.text();
    if (mediaOf(response.headers) !== "application/json")
      throw new Error(`/rpc answered ${response.status} with ${mediaOf(response.headers) ?? "no type"}`);
    return { ...answerOf(body, text), httpStatus: response.status };
  };

  const textOfCall = (method: string, params: object): string =>
    JSON.stringify({ jsonrpc: "2.0", id: "audit", method, params });

  return {
    target,
    send,
    sendRpc,
    call: (method: string, params: object = {}, token = rpcToken) => sendRpc(textOfCall(method, params), token),

    /** One call over HTTP/2. */
    async callOverHttp2(method: string): Promise<RpcAnswer> {
      const session = connect(rpcUrl);
      const failed = new Promise<never>((_, reject) => session.once("error", reject));
      try {
        const text = textOfCall(method, {});
        const stream = session.request({ ":method": "POST", ":path": "/rpc", ...rpcHeaders(rpcToken) });
        stream.end(text);
        const answer = await within(Promise.race([textOf(stream), failed]), `${method} over HTTP/2 was not answered`);
        return answerOf(answer, text);
      } finally {
        session.destroy();
      }
    },

    /** A WebSocket to /rpc/ws. Every answer is validated against the contract; pushes are collected. */
    async openSocket() {
      const socket = new WebSocket(`${rpcUrl.replace(/^http/, "ws")}/rpc/ws`, { headers: rpcHeaders(rpcToken) });
      const pushes: Push[] = [];
      const answers = new Map<string, (text: string) => void>();
      socket.on("message", (data) => {
        const message = JSON.parse(String(data));
        if ("method" in message) pushes.push(message);
        else answers.get(message.id)?.(String(data));
      });
      socket.on("error", () => {});
      await within(once(socket, "open"), "the WebSocket was not opened");
      let last = 0;
      return {
        async call(method: string, params: object = {}): Promise<RpcAnswer> {
          const id = `audit-${++last}`;
          const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
          const came = new Promise<string>((resolve) => answers.set(id, resolve));
          socket.send(text);
          const answer = await within(came, `${method} over the WebSocket was not answered`);
          return answerOf(answer, text);
        },
        /** Resolves with the first push that matches. */
        async pushed(name: string, isWanted: (params: Push["params"]) => boolean): Promise<void> {
          const until = Date.now() + WAIT_MS;
          while (!pushes.some(({ method, params }) => method === name && isWanted(params))) {
            if (Date.now() > until) throw new Error(`no ${name} came within ${WAIT_MS / 1_000} s`);
            await pause(20);
          }
        },
        [Symbol.dispose]: () => socket.terminate(),
      };
    },
  };
}
