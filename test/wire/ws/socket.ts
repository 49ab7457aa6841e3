import { once } from "node:events";
import type { ClientOptions } from "ws";
import { WebSocket } from "ws";
import {
  type GatewayOptions,
  type Push,
  type Pushes,
  RpcClient,
  type RpcSocket,
} from "#generated/clients/typescript/src/rpc.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { pushShapes, rpcErrorShape } from "#test/harness/shapes.ts";

type Response = {
  id: string | number | null;
  result?: unknown;
  error?: {
    code: number;
    message: string;
    data: { name: string; detail?: string; requestId?: string; retryAfterMs?: number };
  };
};

type Closed = { code: number; reason: string };

/** Validates one message of the gateway; throws its faults. */
export function checkMessage(message: Response | Push): void {
  if ("method" in message) {
    const validate = pushShapes().get(message.method);
    if (!validate) throw new Error(`a push of an unknown name: ${JSON.stringify(message)}`);
    if (!validate(message.params)) throw new Error(`${JSON.stringify(validate.errors)}: ${JSON.stringify(message)}`);
  } else if (message.error) {
    if (!rpcErrorShape(message.error))
      throw new Error(`${JSON.stringify(rpcErrorShape.errors)}: ${JSON.stringify(message)}`);
    if (message.error.data.requestId) noteChecked(message.error.data.requestId);
  }
}

/** A socket that a test controls: every received message is stored, and was validated against the contract. */
export class TestSocket {
  readonly ws: WebSocket;
  readonly pushes: Push[] = [];
  readonly responses: Response[] = [];
  /** All messages, in the order of their arrival. */
  readonly messages: (Response | Push)[] = [];
  /** `answer` and the names of pushes, in the order of their arrival. */
  readonly order: string[] = [];
  readonly faults: unknown[] = [];
  readonly closed: Promise<Closed>;
  #last = 0;
  readonly #waiting = new Set<() => void>();

  constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on("message", (data) => {
      try {
        const frame = JSON.parse(String(data)) as Response | Push | (Response | Push)[];
        for (const message of Array.isArray(frame) ? frame : [frame]) {
          checkMessage(message);
          this.messages.push(message);
          this.order.push("method" in message ? message.method : "answer");
          if ("method" in message) this.pushes.push(message);
          else this.responses.push(message);
        }
      } catch (fault) {
        this.faults.push(fault);
      }
      for (const look of this.#waiting) look();
    });
    ws.on("error", () => {});
    this.closed = new Promise((resolve) => {
      ws.on("close", (code, reason) => resolve({ code, reason: String(reason) }));
    });
  }

  /** Resolves with the result of a search in the received messages, as soon as there is one; rejects with an invalid message. */
  until<T>(find: () => T | undefined | false): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (this.faults.length > 0) return reject(this.faults[0]);
        const found = find();
        if (found === undefined || found === false) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      void this.closed.then(({ code, reason }) => reject(new Error(`the socket closed with ${code} ${reason}`)));
      look();
    });
  }

  async ask(method: string, params: object = {}): Promise<Response> {
    const id = `t${++this.#last}`;
    this.ws.send(JSON.stringify({ jsonrpc: "2.0", method, params, id }));
    return this.until(() => this.responses.find((response) => response.id === id));
  }

  /** The result of a call that must succeed. */
  async call<T = Record<string, unknown>>(method: string, params: object = {}): Promise<T> {
    const { result, error } = await this.ask(method, params);
    if (error) throw new Error(`${method} failed: ${JSON.stringify(error)}`);
    return result as T;
  }

  /** The error name of a call that must fail. */
  async refusal(
    method: string,
    params: object = {},
  ): Promise<{ code: number; name: string; detail: string | undefined }> {
    const { error } = await this.ask(method, params);
    if (!error) throw new Error(`${method} did not fail`);
    return { code: error.code, name: error.data.name, detail: error.data.detail };
  }

  /** The first push of that name for which `is` is true. */
  pushed<Name extends keyof Pushes>(name: Name, is: (params: Pushes[Name]) => boolean = () => true) {
    return this.until(() => this.pushesOf(name).find(is));
  }

  pushesOf<Name extends keyof Pushes>(name: Name): Pushes[Name][] {
    return this.pushes.filter(({ method }) => method === name).map(({ params }) => params as Pushes[Name]);
  }

  /** Names of the pushes so far, without the pieces of replies. */
  names(): string[] {
    return this.pushes.map(({ method }) => method).filter((method) => method !== "message.delta");
  }

  [Symbol.dispose](): void {
    this.ws.terminate();
  }
}

export function socketUrl(url: string): string {
  return `${url.replace(/^http/, "ws")}/rpc/ws`;
}

export async function openSocket(
  { url, rpcToken }: { url: string; rpcToken: string },
  { token = rpcToken, ...options }: ClientOptions & { token?: string } = {},
): Promise<TestSocket> {
  const ws = new WebSocket(socketUrl(url), {
    perMessageDeflate: false,
    ...options,
    headers: { authorization: `Bearer ${token}`, ...options.headers },
  });
  const socket = new TestSocket(ws);
  await once(ws, "open");
  return socket;
}

/** The WebSocket of the generated client, which validates the received messages. */
class CheckedWebSocket extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols);
    this.on("message", (data) => {
      const frame = JSON.parse(String(data)) as Response | Push | (Response | Push)[];
      for (const message of Array.isArray(frame) ? frame : [frame]) checkMessage(message);
    });
  }
}

/** Sockets of a client that a test can disconnect, as a network does. */
export function createCuttable() {
  const open = new Set<WebSocket>();
  class CutWebSocket extends CheckedWebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols);
      open.add(this);
      this.on("close", () => open.delete(this));
    }
  }
  return { open, WebSocket: CutWebSocket };
}

export function createSocketClient(
  { url, rpcToken }: { url: string; rpcToken: string },
  options: GatewayOptions = {},
): RpcSocket {
  return new RpcClient({
    url,
    rpcToken,
    maxRetries: 0,
    WebSocket: CheckedWebSocket,
    reconnect: { minMs: 1, maxMs: 20, attempts: 50 },
    ...options,
  }).connect();
}
