import type { Found, FoundEvent, FoundMessage, FoundSession, FoundTurn } from "./found.ts";
import { readJournals } from "./journals.ts";
import { AGENTS, type Order } from "./orders.ts";
import { bearer, type Caller, SECRETS } from "./requests.ts";

/** The prefix of sessions without requests, which may be deleted. */
export const NOISE = "noise:";
const PAGE = 500;
const AT_ONCE = 32;

/** Runs `work` on all, a limited number at a time. */
async function eachOf<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  const lane = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

export type Json = Record<string, unknown>;

/** Reads a list to its end. */
async function eachPage(
  read: (from: { cursor?: string }) => Promise<Json | undefined>,
  take: (page: Json) => void,
): Promise<void> {
  let cursor: unknown;
  do {
    const page = (await read(typeof cursor === "string" ? { cursor } : {})) ?? {};
    take(page);
    cursor = page.nextCursor ?? page.next_cursor;
  } while (typeof cursor === "string");
}

/** Reads everything that the gateways have in their store. Each of several gateways is asked for a part, because all must have the same state. */
export async function readFound(caller: Caller, urls: readonly string[], orders: readonly Order[]): Promise<Found> {
  let asked = 0;
  const next = () => urls[asked++ % urls.length] as string;
  const get = async (path: string): Promise<Json | undefined> => {
    const { status, text } = await caller.ask(`${next()}/api/v1${path}`, "GET", bearer(SECRETS.key));
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`);
    return JSON.parse(text) as Json;
  };
  const rpc = async (method: string, params: object): Promise<Json> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const { text } = await caller.ask(`${next()}/rpc`, "POST", bearer(SECRETS.rpcToken), body);
    const { result, error } = JSON.parse(text) as { result?: Json; error?: unknown };
    if (!result) throw new Error(`${method} answered ${JSON.stringify(error)}`);
    return result;
  };

  const sessions = new Map<string, FoundSession>();
  await eachPage(
    (cursor) => rpc("session.list", { limit: PAGE, ...cursor }),
    (page) => {
      for (const { sessionId, messageCount } of page.sessions as FoundSession[])
        if (!sessionId.startsWith(NOISE)) sessions.set(sessionId, { sessionId, messageCount, messages: [] });
    },
  );
  await eachOf(sessions.values(), async (session) => {
    const { sessionId } = session;
    await eachPage(
      (cursor) => rpc("session.get", { sessionId, limit: PAGE, includeCompacted: true, ...cursor }),
      (page) => {
        session.messages.push(...(page.messages as FoundMessage[]));
        session.messageCount = (page.session as FoundSession).messageCount;
      },
    );
    session.messages.reverse();
  });

  const events = new Map<string, FoundEvent>();
  await eachPage(
    ({ cursor }) => get(`/events?limit=${PAGE}${cursor === undefined ? "" : `&cursor=${cursor}`}`),
    (page) => {
      for (const event of page.events as Json[]) events.set(event.event_id as string, eventOf(event));
    },
  );
  // The list may be incomplete: each acknowledged one is read by its id.
  const acknowledged = orders.filter(({ kind }) => kind === "wake").flatMap(({ acks }) => acks.map(({ work }) => work));
  await eachOf(new Set(acknowledged.filter((id) => !events.has(id))), async (id) => {
    const event = await get(`/events/${id}`);
    if (event) events.set(id, eventOf(event));
  });

  const turnIds = new Set([...sessions.values()].flatMap(({ messages }) => messages.map(({ turnId }) => turnId)));
  for (const { kind, acks } of orders) if (kind !== "wake") for (const { work } of acks) turnIds.add(work);
  const turns = new Map<string, FoundTurn>();
  await eachOf(turnIds, async (turnId) => {
    const turn = await get(`/turns/${turnId}`);
    if (turn) turns.set(turnId, turnOf(turn));
  });

  const followed = [...sessions.keys()].filter(
    (id) => id.startsWith("room:") || /^webhook:(agent|mapped|burst)-/.test(id),
  );
  const mains = AGENTS.map((agent) => `agent:${agent}:main`).filter((id) => sessions.has(id));
  return { turns, events, sessions, journals: await readJournals(next(), [...followed, ...mains]) };
}

export function eventOf(event: Json): FoundEvent {
  return {
    eventId: event.event_id,
    turnId: event.turn_id,
    ...pick(event, "agent", "status", "text", "attempts"),
  } as FoundEvent;
}

export function turnOf(turn: Json): FoundTurn {
  return {
    turnId: turn.turn_id,
    sessionId: turn.session_id,
    error: (turn.error as { name?: string } | null)?.name ?? null,
    ...pick(turn, "status", "attempt", "reply"),
  } as FoundTurn;
}

function pick(from: Json, ...names: string[]): Json {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}
