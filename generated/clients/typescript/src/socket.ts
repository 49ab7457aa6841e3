// Copied by "npm run generate" from scripts/generate/runtime/typescript/socket.ts; do not edit.
import { pause } from "./attempts.ts";
import { GatewayError, isWorthRetrying, rpcError } from "./error.ts";
import { isResponse } from "./rpc-message.ts";
import type { Reconnect, SocketLike } from "./settings.ts";

interface Events {
  /** A new connection is open. Nothing else is sent before this call has ended. */
  onOpen(socket: SocketLike): Promise<void>;
  onFrame(frame: unknown): void;
  /** The connection is lost. `reconnect` opens it again at once. */
  onLost(error: GatewayError): { reconnect: boolean };
  /** The connection could not be opened again. */
  onGone(error: unknown): void;
}

/** The protocol, and the token in the only form that a browser can send. */
export function protocolsFor(token: string): string[] {
  return ["agent-gateway.v1", `bearer.${base64url(token)}`];
}

function base64url(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** The close code for a token that is no longer valid: a new connection with it would be refused. */
const TOKEN_GONE = 4401;

/** The time after which a restarting gateway wants the next attempt, different for each client. */
function hintOf(reason: string): number | undefined {
  const ms = /\bretry-after-ms=(\d{1,6})\b/.exec(reason)?.[1];
  return ms === undefined ? undefined : Number(ms);
}

/** The `ws` package passes on the answer that refused a connection; a browser hides it. */
interface TellsResponse {
  on?(
    event: "unexpected-response",
    listener: (request: unknown, response: AsyncIterable<Uint8Array> & { statusCode?: number }) => void,
  ): void;
}

/** A larger refusal is not read. */
const MOST_REFUSAL_BYTES = 64 * 1024;

/** The gateway's reason for refusing the connection, if it gives one. */
async function refusalIn(response: AsyncIterable<Uint8Array>): Promise<GatewayError | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of response) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > MOST_REFUSAL_BYTES) return undefined;
    }
    const body: unknown = JSON.parse(text);
    return isResponse(body) && body.error !== undefined ? rpcError(body.error, undefined) : undefined;
  } catch {
    return undefined;
  }
}

/** One connection at a time: opened when it is first used, and again after it was lost. */
export function createConnection(
  open: () => SocketLike,
  { attempts = 10, minMs = 250, maxMs = 30_000, onPause }: Reconnect,
  events: Events,
) {
  let current: SocketLike | undefined;
  let connected: Promise<SocketLike> | undefined;
  let closed = false;

  const connectOnce = () =>
    new Promise<SocketLike>((resolve, reject) => {
      const socket = open();
      let reason = "";
      let refusal: GatewayError | undefined;
      let stands = false;
      current = socket;
      (socket as TellsResponse).on?.("unexpected-response", async (_request, response) => {
        refusal = await refusalIn(response);
        reason = `HTTP ${response.statusCode}`;
        socket.close();
      });
      socket.addEventListener("error", ({ message }) => {
        reason ||= message ?? "";
      });
      socket.addEventListener("message", ({ data }) => {
        try {
          events.onFrame(JSON.parse(String(data)));
        } catch {
          socket.close(4000, "a frame is no JSON");
        }
      });
      socket.addEventListener("open", () => {
        events.onOpen(socket).then(
          () => {
            stands = true;
            resolve(socket);
          },
          (error: unknown) => {
            reject(error);
            socket.close(1000);
          },
        );
      });
      socket.addEventListener("close", ({ code, reason: said }) => {
        const error = refusal ?? lostError(`The connection ended with ${code} ${said || reason}`.trimEnd());
        if (current === socket) current = undefined;
        const { reconnect } = events.onLost(error);
        reject(error);
        if (!stands) return;
        const isWanted = reconnect && !closed;
        connected = isWanted && code !== TOKEN_GONE ? connectAgain(hintOf(said)) : undefined;
        if (isWanted && code === TOKEN_GONE) events.onGone(error);
      });
    });

  /** Reconnects, with growing pauses and jitter. */
  const connectAgain = (hintMs: number | undefined): Promise<SocketLike> => {
    const trying = (async () => {
      for (let attempt = 0; ; attempt += 1) {
        const ownMs = Math.min(maxMs, minMs * 2 ** attempt) * (0.5 + Math.random() / 2);
        const ms = attempt === 0 ? Math.min(maxMs, hintMs ?? ownMs) : ownMs;
        onPause?.(ms);
        await pause(ms);
        if (closed) throw clientClosed();
        try {
          return await connectOnce();
        } catch (error) {
          if (attempt + 1 < attempts && isWorthRetrying(error as GatewayError, true)) continue;
          connected = undefined;
          events.onGone(error);
          throw error;
        }
      }
    })();
    trying.catch(() => {}); // The callers that wait for the connection get the error; without one it is ignored.
    return trying;
  };

  return {
    /** Returns the connection, and opens it if there is none. A failed first attempt is not retried. */
    async ready(): Promise<SocketLike> {
      if (closed) throw clientClosed();
      connected ??= connectOnce().catch((error: unknown) => {
        connected = undefined;
        throw error;
      });
      return connected;
    },
    close() {
      closed = true;
      connected = undefined;
      current?.close(1000);
    },
  };
}

export function lostError(detail: string): GatewayError {
  return new GatewayError("connection-failed", "Connection failed", { detail: `${detail}.` });
}

export function clientClosed(): GatewayError {
  return new GatewayError("closed", "Closed", { detail: "The client was closed." });
}
