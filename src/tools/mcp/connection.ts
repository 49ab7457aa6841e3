import { Client, type Transport } from "@modelcontextprotocol/client";
import { type Clock, sleep } from "#kit/clock.ts";
import { type Credit, createCredit } from "#kit/credit.ts";
import { once } from "#kit/once.ts";
import type { Program } from "#kit/programs/program.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";
import { ToolError } from "../tool.ts";
import { isUnknownMethod } from "./errors.ts";
import { followTools } from "./follow.ts";
import { openHttpTransport } from "./http.ts";
import { type Listed, listTools } from "./server-tools.ts";
import { openStdioTransport } from "./stdio.ts";
import { usedOf } from "./used.ts";

export type ServerSettings = {
  name: string;
  version: string;
  reach: ({ type: "stdio" } & Program) | { type: "http"; url: string; headers: Readonly<Record<string, string>> };
  callMs: number;
  outputCharacters: number;
};

/** `failed` is called for each failed start: at most once in a pause. */
export type ServerParts = { clock: Clock; say: (said: StderrLine) => void; failed: (reason: string) => void };

/** `calls`: the number of calls that wait for an answer. */
export type Connection = {
  client: Client;
  /** It speaks the revision without sessions. */
  isModern: boolean;
  listed: Listed;
  /** Has the list read again if it may be out of date. */
  renew: () => void;
  calls: number;
  isDoubted: boolean;
  /** The session has expired. The connection is closed when the last waiting call has ended. */
  isExpired: boolean;
  /** The reason why the gateway ended it, if it did. */
  excess: () => string | undefined;
  /** Resolves when nothing of it is left. */
  close: () => Promise<void>;
};

const START_MS = 10_000;
/** The pause after a list was read again because it has changed. */
const REFRESH_PAUSE_MS = 1_000;
/** The shortest time for which a list is used, whatever its server says. */
const FRESH_MS = 60_000;
/** The time in which a server must answer a ping after a call that timed out. */
const SIGN_MS = 10_000;
/** The time after the end of a call at which its request is aborted, even if data still arrives. */
const LATE_MS = 1_000;
/**
 * The limit on requests of a server. We offer it nothing: a ping is answered, and any other request is refused. A server that
 * sends more is ended.
 */
const REQUESTS = { atOnce: 20, aSecond: 2 };
/** The limit on messages that a server sends, of any kind. A server that sends more is ended. */
const MESSAGES = { atOnce: 10_000, aSecond: 1_000 };

/** The revision without sessions. The client offers the ones before it in one handshake, `initialize`. */
const MODERN = "2026-07-28";
/** One way to begin with a server: `server/discover` or `initialize`. `ms`: the time in which the server must answer. */
type Opening = { isModern: boolean; ms: number };

/** The way to a server. Each opening gets its own transport. */
type Line = { openings: readonly Opening[]; next: () => Transport; close: () => Promise<void> };

/** `mayPass`: whether one more notification about a subscription is passed on. */
type Hearing = { mayAsk: () => boolean; mayPass: () => boolean; onChange: () => void };

/**
 * Connects to a server and reads its tools. Nothing of it is left if this throws. `onClosed` is called when the connection is over.
 * `wasOld`: the server's last connection had a revision before the one without sessions.
 */
export async function connect(
  { reach, callMs, version }: ServerSettings,
  parts: ServerParts,
  { onClosed, closing, wasOld }: { onClosed: () => void; closing: AbortSignal; wasOld: boolean },
): Promise<Connection> {
  const { clock } = parts;
  const requests = createCredit(clock, REQUESTS);
  const messages = createCredit(clock, MESSAGES);
  const passed = createCredit(clock, REQUESTS);
  const ending = new AbortController();
  let excess: string | undefined;
  let hasStarted = false;
  const may = (credit: Credit, what: string): boolean => {
    if (excess !== undefined) return false;
    if (spent(credit)) return true;
    refuse(`too many ${what}`);
    return false;
  };
  const refuse = (what: string): void => {
    if (excess !== undefined) return;
    excess = `it sent ${what}, and was ended`;
    if (hasStarted) parts.failed(excess);
    void end();
  };
  const mayTell = () => may(messages, "messages");
  const line = openLine({ reach, callMs, wasOld }, { ...parts, mayTell, refuse });
  const clients: Client[] = [];
  const end = once(async () => {
    ending.abort();
    await Promise.allSettled(clients.map((client) => client.close()));
    await line.close();
  });
  const giveUp = () => void end();
  const late = () => {
    excess ??= "it did not answer in time";
    giveUp();
  };
  let stop = () => {};
  const startLimit = () => {
    stop();
    stop = clock.after(START_MS, late);
  };
  closing.addEventListener("abort", giveUp, { once: true });
  try {
    const hearing: Hearing = {
      mayAsk: () => may(requests, "requests of its own"),
      mayPass: () => spent(passed),
      onChange: () => {},
    };
    const create = (isModern: boolean) => {
      const client = createClient(version, isModern);
      clients.push(client);
      return client;
    };
    const client = await agree(line, create, { hearing, startLimit, signal: ending.signal });
    client.onclose = onClosed;
    const connection: Connection = {
      client,
      isModern: client.getProtocolEra() === "modern",
      listed: await listTools(client, START_MS),
      renew: () => {},
      calls: 0,
      isDoubted: false,
      isExpired: false,
      excess: () => excess,
      close: end,
    };
    const refresh = refresher(client, connection, clock, ending.signal);
    hearing.onChange = () => void refresh();
    let since = clock.monotonic();
    connection.renew = () => {
      if (clock.monotonic() - since < Math.max(connection.listed.ttlMs, FRESH_MS)) return;
      since = clock.monotonic();
      void refresh();
    };
    void followTools(client, { clock, onChange: hearing.onChange, signal: ending.signal });
    hasStarted = true;
    return connection;
  } catch (error) {
    await end();
    throw excess === undefined ? error : new ToolError(excess);
  } finally {
    stop();
    closing.removeEventListener("abort", giveUp);
  }
}

function spent(credit: Credit): boolean {
  const has = credit.has();
  if (has) credit.spend();
  return has;
}

function createClient(version: string, isModern: boolean): Client {
  const client = new Client(
    { name: "agent-gateway", version },
    {
      capabilities: {},
      versionNegotiation: { mode: isModern ? { pin: MODERN } : "legacy" },
      inputRequired: { autoFulfill: false },
    },
  );
  // An error in a single message does not end the connection, and a call that waits for an answer has its own time limit.
  client.onerror = () => {};
  return client;
}

/**
 * The client of the first opening that the server accepts. Throws the error of `initialize` if it accepts none, and the one of
 * `server/discover` if it does not know `initialize`. `startLimit` is called before each: a slow server has the time for the second
 * opening that it would have without the first.
 */
async function agree(
  { openings, next }: Line,
  create: (isModern: boolean) => Client,
  { hearing, startLimit, signal }: { hearing: Hearing; startLimit: () => void; signal: AbortSignal },
): Promise<Client> {
  const errors: { discover?: unknown; initialize?: unknown } = {};
  for (const { isModern, ms } of openings) {
    startLimit();
    const client = create(isModern);
    try {
      await client.connect(heardBy(next(), hearing), { timeout: ms });
      return client;
    } catch (error) {
      if (signal.aborted) throw error;
      errors[isModern ? "discover" : "initialize"] = error;
    }
  }
  throw isUnknownMethod(errors.initialize) ? errors.discover : errors.initialize;
}

/**
 * A transport for one client. Closing it does not close the server's transport. It passes on responses, requests within their limit, and
 * what concerns a subscription. The only other relevant notification is the one about changed tools. For any other one, the
 * client would do more work than the server that sends it.
 */
function heardBy(transport: Transport, hearing: Hearing): Transport {
  const own: Transport = {
    hasPerRequestStream: transport.hasPerRequestStream === true,
    get sessionId() {
      return transport.sessionId;
    },
    setProtocolVersion: (version) => transport.setProtocolVersion?.(version),
    start: () => transport.start(),
    send: (message, options) => transport.send(message, options),
    async close() {
      transport.onclose = undefined;
      transport.onmessage = undefined;
      own.onclose?.();
    },
  };
  transport.onclose = () => own.onclose?.();
  transport.onerror = (error) => own.onerror?.(error);
  transport.onmessage = (message, extra) => {
    if (!("method" in message)) own.onmessage?.(usedOf(message), extra);
    else if ("id" in message) {
      if (hearing.mayAsk()) own.onmessage?.(message, extra);
    } else if (message.method === "notifications/tools/list_changed") hearing.onChange();
    else if (OF_SUBSCRIPTIONS.has(message.method) && hearing.mayPass()) own.onmessage?.(message, extra);
  };
  return own;
}

const OF_SUBSCRIPTIONS = new Set(["notifications/subscriptions/acknowledged", "notifications/cancelled"]);

/**
 * Reads the list of tools again, however often that is requested: one reading at a time, with a pause after each. If a reading fails, the
 * list is kept, and may be out of date from now on.
 */
function refresher(client: Client, connection: Connection, clock: Clock, signal: AbortSignal) {
  let isWanted = false;
  let isReading = false;
  return async (): Promise<void> => {
    isWanted = true;
    if (isReading) return;
    isReading = true;
    while (isWanted && !signal.aborted) {
      isWanted = false;
      connection.listed = await listTools(client, START_MS).catch(() => ({ ...connection.listed, ttlMs: 0 }));
      await sleep(clock, REFRESH_PAUSE_MS, signal);
    }
    isReading = false;
  };
}

/**
 * Over HTTP `server/discover` is sent first, because a server answers each request on its own. `initialize` is sent first to a server that
 * was old before, because some never answer an unknown request, and to programs: some exit at any other first request, and programs without
 * `initialize` refuse it and continue.
 */
function openLine(
  { reach, callMs, wasOld }: Pick<ServerSettings, "reach" | "callMs"> & { wasOld: boolean },
  parts: ServerParts & { mayTell: () => boolean; refuse: (what: string) => void },
): Line {
  const initialize: Opening = { isModern: false, ms: START_MS };
  if (reach.type === "stdio") {
    const transport = openStdioTransport(reach, parts);
    const openings = [initialize, { isModern: true, ms: START_MS }];
    return { openings, next: () => transport, close: () => transport.close() };
  }
  const longestMs = Math.max(callMs, START_MS) + LATE_MS;
  let last: ReturnType<typeof openHttpTransport> | undefined;
  const close = async () => await last?.close();
  const next = () => {
    void close();
    last = openHttpTransport({ ...reach, ...parts, longestMs });
    return last.transport;
  };
  const discover: Opening = { isModern: true, ms: START_MS / 2 };
  return { openings: wasOld ? [initialize, discover] : [discover, initialize], next, close };
}

/**
 * After a call that took too long the server is slow, or stuck for good. If it does not even answer a small request, it is ended,
 * and the next turn starts it again.
 */
export function doubt(one: Connection, { clock, failed }: ServerParts): void {
  if (one.isDoubted) return;
  one.isDoubted = true;
  const { client, isModern } = one;
  const stop = clock.after(SIGN_MS, () => {
    failed("it did not respond for 10 s after a call, and was ended");
    void one.close();
  });
  const over = () => {
    stop();
    one.isDoubted = false;
  };
  const limit = { timeout: 2 * SIGN_MS };
  // Any answer, even an error, shows that the server responds.
  const answer: Promise<unknown> = isModern ? client.discover(limit) : client.ping(limit);
  answer.then(over, over);
}
