import { effect, signal } from "@preact/signals";
import { Gateway, GatewayError, type Push } from "#generated/clients/typescript/src/index.ts";
import type { RpcSocket } from "#generated/clients/typescript/src/rpc.ts";
import { checkToken } from "./api.ts";
import { identity, whyNot } from "./session.ts";

type LiveState = "off" | "connecting" | "live" | "reconnecting";

/** How the stream of pushes is doing. */
export const liveState = signal<LiveState>("off");
/** When a lost stream is tried again. */
export const nextTry = signal(0);
/** Entries may be missing: the gateway cannot continue from the page's position. */
export const wasReset = signal(false);
/** News wait for the reader of the page's list, so that nothing moves under their eyes. */
export const newsWait = signal(false);
/** When the connection was made, and when the page began to read. */
let connectedAt = 0;
let pageBeganAt = 0;

/** Another page reads its lists when it is opened: a connection from before has nothing that it misses. */
export function beginPage(): void {
  pageBeganAt = performance.now();
  wasReset.value = false;
}

/** Increases each time the stream is complete again: after a reconnect, and when the subscription of a page has started. */
const returns = signal(0);

/** A push whose name this client may not know yet. */
export type AnyPush = Push | { method: string; params: Record<string, unknown> };
type Listener = (push: AnyPush) => void;

const listeners = new Set<Listener>();
/** A subscription of pages, with the number of its users. `begun` resolves when it has started. */
type Held = { request: object; count: number; begun: Promise<void>; hasBegun: () => void; isAwaited: boolean };
const held = new Map<string, Held>();
let socket: RpcSocket | undefined;

/** Reports the state of each connection, which the client does not expose. */
class WatchedSocket extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols);
    this.addEventListener("open", () => {
      if (liveState.peek() === "reconnecting") returns.value++;
      liveState.value = "live";
      connectedAt = performance.now();
    });
    this.addEventListener("close", () => {
      const token = identity.peek()?.token;
      if (liveState.peek() === "live") liveState.value = "reconnecting";
      else if (token !== undefined) void checkToken(token);
    });
  }
}

function connect(token: string): RpcSocket {
  const client = new Gateway({
    url: location.origin,
    rpcToken: token,
    maxRetries: 0,
    WebSocket: WatchedSocket,
    reconnect: {
      attempts: Number.POSITIVE_INFINITY,
      minMs: 250,
      maxMs: 5_000,
      onPause: (ms) => (nextTry.value = Date.now() + ms),
    },
  }).rpc.connect();
  liveState.value = "connecting";
  void listen(client);
  return client;
}

async function listen(client: RpcSocket): Promise<void> {
  for (;;) {
    try {
      for await (const push of client.pushes()) {
        // The gateway cannot continue from the page's position, so lists are reloaded.
        if (push.method === "stream.reset" && !("sessionId" in push.params)) {
          wasReset.value = connectedAt > pageBeganAt;
          returns.value++;
        }
        for (const listener of listeners) listener(push);
      }
      return;
    } catch {
      if (client !== socket) return;
      liveState.value = "reconnecting";
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      for (const { request } of held.values()) await client.subscribe(request).catch(() => {});
    }
  }
}

function wanted(): RpcSocket | undefined {
  const who = identity.peek();
  if (!who || who.kind === "key") return undefined;
  socket ??= connect(who.token);
  return socket;
}

effect(() => {
  identity.value;
  socket?.close();
  socket = undefined;
  held.clear();
  liveState.value = "off";
});

/** Subscribes, again if the connection is lost before the answer: the client remembers only subscriptions that started. */
async function begin(client: RpcSocket, name: string, request: Parameters<RpcSocket["subscribe"]>[0]) {
  while (client === socket && held.has(name)) {
    try {
      await client.subscribe(request);
      held.get(name)?.hasBegun();
      // The page may have read before this, and nothing in between may be missing.
      if (!held.get(name)?.isAwaited) returns.value++;
      return;
    } catch (error) {
      if (error instanceof GatewayError && error.code !== undefined) return held.get(name)?.hasBegun();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

/** Subscribes to streams until every holder has called the returned function. */
export function hold(request: Parameters<RpcSocket["subscribe"]>[0] & { deliveries?: true }): () => void {
  const name = JSON.stringify(request);
  const { sessions, agents, deliveries } = request;
  // All permissions are needed for the recorder's pushes.
  const right = deliveries ? "*.*" : sessions || agents ? "session.get" : "gateway.stream";
  const client = wanted();
  if (!client || whyNot(right) !== undefined) return () => {};
  const known = held.get(name);
  if (known) known.count++;
  else {
    let hasBegun = () => {};
    const begun = new Promise<void>((resolve) => (hasBegun = resolve));
    held.set(name, { request, count: 1, begun, hasBegun, isAwaited: false });
    void begin(client, name, request);
  }
  return () => {
    const entry = held.get(name);
    if (!entry || --entry.count > 0) return;
    held.delete(name);
    if (deliveries) client.unsubscribe({ deliveries: true }).catch(() => {});
    if (sessions) client.unsubscribe({ sessions: Object.keys(sessions) }).catch(() => {});
    if (agents) client.unsubscribe({ agents }).catch(() => {});
  };
}

/** The longest time that a page waits for its subscription before it reads. */
const MOST_AWAITED_MS = 1_000;

/** Resolves when a held subscription has started: a page that reads then misses nothing, and need not read twice. */
export async function whenHeld(request: Parameters<typeof hold>[0]): Promise<void> {
  const entry = held.get(JSON.stringify(request));
  if (!entry) return;
  entry.isAwaited = true;
  const late = new Promise<void>((resolve) => setTimeout(resolve, MOST_AWAITED_MS)).then(() => {
    entry.isAwaited = false;
  });
  await Promise.race([entry.begun, late]);
}

/** Calls `listener` with each push; the returned function ends it. */
export function onPush(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls `listener` whenever something may have been missed, so that a list reads its newest again. */
export function onReturn(listener: () => void): () => void {
  const before = returns.peek();
  return returns.subscribe((count) => {
    if (count > before) listener();
  });
}

/** Pushes after a quiet time are shown after this time, others at this interval. */
const SOON_MS = 25;
const GATHER_MS = 250;

/** Collects pushes, and passes them on at most four times a second; a hidden tab gets none until it is visible again. */
export function gathered(wants: (push: AnyPush) => boolean, give: (pushes: AnyPush[]) => void): () => void {
  let waiting: AnyPush[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let flushedAt = 0;
  const flush = () => {
    timer = undefined;
    flushedAt = Date.now();
    if (document.hidden || waiting.length === 0) return;
    const now = waiting;
    waiting = [];
    give(now);
  };
  const stop = onPush((push) => {
    if (!wants(push)) return;
    waiting.push(push);
    // A hidden tab reads the missed entries.
    if (waiting.length > 2_000) waiting.shift();
    timer ??= setTimeout(flush, Math.max(SOON_MS, flushedAt + GATHER_MS - Date.now()));
  });
  const stopReturns = onReturn(flush);
  document.addEventListener("visibilitychange", flush);
  return () => {
    stop();
    stopReturns();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", flush);
  };
}
