/** How rows were packed up to version 3: values by their places in JSON. Nothing else reads them. */
import type { DeliveryRecord, EventRecord, OpenTurn, SessionRecord, TurnRecord } from "#store/rules/records.ts";
import type {
  Delivery,
  DeliveryStep,
  Entry,
  EventStatus,
  GatewayEntry,
  GatewayNews,
  MoreUsage,
  Session,
  SystemEvent,
  Turn,
  TurnError,
  Usage,
} from "#store/store.ts";

const MINUTE = 60_000;
/** In the place of a value, it stood for the one of the entry before. */
const SAME = 0;

/** Gives values their names; null stood for a value that is not there. */
export const named = <T>(names: string, values: readonly unknown[]): T =>
  Object.fromEntries(names.split(" ").map((name, n) => [name, values[n] ?? undefined])) as T;

const parsed = <T>(names: string, json: string): T => named<T>(names, JSON.parse(json) as unknown[]);

type Packed = [kind: number, at: number, turnId: string | typeof SAME, ...values: unknown[]];

/** Long texts stood behind the JSON, with their lengths in their places. */
const unpack = (body: string): Packed[] => {
  let at = body.indexOf("\n");
  if (at === -1) return JSON.parse(body) as Packed[];
  const entries = JSON.parse(body.slice(0, at++)) as unknown[][];
  for (const entry of entries) {
    for (const [n, value] of entry.entries()) {
      if (!Array.isArray(value)) continue;
      const length = value[0] as number;
      entry[n] = body.slice(at, at + length);
      at += length;
    }
  }
  return entries as Packed[];
};

/** A row of a journal or of the gateway's stream, of which the last entry has `lastSeq`. */
export type EntriesRow = { lastSeq: number; body: string };

export const readEntries = ({ lastSeq, body }: EntriesRow): Entry[] => {
  const packed = unpack(body);
  const entries: Entry[] = [];
  for (const [n, one] of packed.entries()) {
    entries.push(readEntry(one, lastSeq - packed.length + 1 + n, entries.at(-1)));
  }
  return entries;
};

/** The names of entries by their kinds, and the values that each had. */
const ENTRIES: readonly [name: Entry["name"], values: string][] = [
  ["message.created", "messageId role text outside context"],
  ["message.completed", "messageId text"],
  ["turn.queued", "attempt"],
  ["turn.started", "attempt"],
  ["turn.completed", "input output reply of"],
  ["turn.failed", "input output error detail of"],
  ["turn.cancelled", "input output reply of"],
  ["session.compacted", "messages tokens messagesAfter tokensAfter"],
];
type EntryValues = Record<"input" | "output" | "messages" | "tokens" | "messagesAfter" | "tokensAfter", number> & {
  outside: number;
  error: TurnError["name"];
  detail: string | undefined;
  reply: string | typeof SAME;
  of: { more?: MoreUsage; model?: string } | undefined;
};

const readEntry = ([kind, time, turn, ...rest]: Packed, seq: number, before: Entry | undefined): Entry => {
  const [name, names] = ENTRIES[kind] as (typeof ENTRIES)[number];
  const at = time === SAME && before ? before.at : time;
  const base = { seq, at, turnId: turn === SAME ? (before?.turnId ?? "") : turn };
  const values = named<EntryValues>(names, rest);
  const { input, output, of } = values;
  const end = { usage: { input, output, more: of?.more }, model: of?.model };
  switch (name) {
    case "message.created":
      return { ...base, name, ...values, outside: values.outside === 1 } as unknown as Entry;
    case "turn.queued":
      return { ...base, name };
    case "turn.failed":
      return { ...base, name, ...end, error: { name: values.error, detail: values.detail } };
    case "turn.completed":
    case "turn.cancelled": {
      const text = before?.name === "message.completed" ? before.text : "";
      return { ...base, name, ...end, reply: values.reply === SAME ? text : values.reply };
    }
    case "session.compacted": {
      const { messages, tokens, messagesAfter, tokensAfter } = values;
      const after = { messages: messagesAfter, tokens: tokensAfter };
      return { ...base, name, before: { messages, tokens }, after };
    }
    default:
      return { ...base, name, ...values } as unknown as Entry;
  }
};

export type SessionRow = { ordinal: number; sessionId: string; agent: string; head: number | undefined; body: string };
const SESSION =
  "channel userId createdAt updatedAt firstSeq lastSeq messageCount compactedCount input output contextBytes more";

export const readSession = (row: SessionRow, turnsQueued: number): SessionRecord => {
  const { ordinal, sessionId, agent, head, body } = row;
  const values = parsed<Session & Usage & Pick<SessionRecord, "compactedCount">>(SESSION, body);
  const { compactedCount, input, output, more, ...session } = values;
  return {
    session: { ...session, sessionId, agent, turnsQueued, usage: { input, output, more }, ordinal },
    compactedCount,
    headDueAt: head === undefined ? undefined : head * MINUTE,
  };
};

/** A row of a turn, with the id and the agent of its session. */
export type TurnRow = { session: number; body: string; sessionId: string; agent: string };
type Taken = { ordinals: number[]; maxAttempts: number; streamKeep: number };
type OpenValues = Turn & Omit<OpenTurn, "events"> & { events: Taken | undefined; due: number; node: string };
const OPEN_TURN =
  "turnId surface caller status attempt createdAt startedAt model skillIds messageId seq usage deliveryId " +
  "waited countedModel announce events replyMessageId spentMs due node isCancelled";

export const takenBy = (body: string): { turnId: string; ordinals: readonly number[] } => {
  const { turnId, events } = parsed<OpenValues>(OPEN_TURN, body);
  return { turnId, ordinals: events?.ordinals ?? [] };
};

/** `idOf` tells the id of an event by its ordinal. */
export const readOpenTurn = (
  { place, session, body, sessionId, agent }: TurnRow & { place: number },
  idOf: (ordinal: number) => string,
): TurnRecord & { open: OpenTurn } => {
  const values = parsed<OpenValues>(OPEN_TURN, body);
  const { waited, countedModel, announce, events, replyMessageId, spentMs, due, node, isCancelled, ...turn } = values;
  const { ordinals = [], maxAttempts = 0, streamKeep = 0 } = events ?? {};
  return {
    turn: { ...turn, sessionId, agent, endedAt: undefined, reply: undefined, error: undefined },
    ordinal: session,
    place,
    replySeq: 0,
    open: {
      ...{ waited, countedModel, announce, replyMessageId, spentMs, isCancelled, readyOrder: undefined },
      events: events && { ids: ordinals.map(idOf), maxAttempts, streamKeep },
      dueAt: due === 0 ? undefined : due,
      lease: turn.status === "running" ? { node, endsAt: 0 } : undefined,
    },
  };
};

const ENDED_TURN =
  "surface caller status attempt createdAt startedAt endedAt model skillIds messageId seq replySeq error usage deliveryId";

export const readEndedTurn = (row: TurnRow & { turnId: string }): TurnRecord => {
  const { turnId, session, body, sessionId = "", agent = "" } = row;
  const { replySeq, ...turn } = parsed<Turn & Pick<TurnRecord, "replySeq">>(ENDED_TURN, body);
  const ended = { ...turn, turnId, sessionId, agent, reply: undefined };
  return { turn: ended, ordinal: session, place: 0, replySeq, open: undefined };
};

const STATUSES: readonly EventStatus[] = ["queued", "handled", "dead"];
/** An event that is gone left its place empty. */
const GONE = 3;

type EventHead = [ids: string[], agents: string | string[], deliveryIds: (string | null)[]];
/** Events that were alike shared a state; the length alone stood for the ones that wait as they came. */
type EventState = Pick<SystemEvent, "endedAt" | "turnId" | "reason"> & { state?: number; attempts?: number };

/** The events that were queued together. `takenOf` tells the turn that works on an event. */
export const readEvents = (
  { first, head, body, states }: { first: number; head: string; body: string; states: string },
  takenOf: (ordinal: number) => string | undefined,
): EventRecord[] => {
  const [ids, agents, deliveryIds] = JSON.parse(head) as EventHead;
  const bodies = JSON.parse(body) as (unknown[] | 0)[];
  const runs = JSON.parse(states) as [count: number, ...unknown[]][];
  const all = runs.flatMap(([count, ...state]) => Array.from({ length: count }, () => state));
  return ids.flatMap((eventId, n): EventRecord[] => {
    const kept = bodies[n];
    const state = named<EventState>("state attempts endedAt turnId reason", all[n] ?? []);
    if (state.state === GONE || !kept) return [];
    const taken = takenOf(first + n);
    const event = {
      ...{ eventId, agent: typeof agents === "string" ? agents : (agents[n] as string) },
      ...named<Pick<SystemEvent, "text" | "metadata" | "caller" | "createdAt">>("text metadata caller createdAt", kept),
      ...{ status: STATUSES[state.state ?? 0] as EventStatus, attempts: state.attempts ?? 0, endedAt: state.endedAt },
      ...{ turnId: taken ?? state.turnId, reason: state.reason },
      ...{ deliveryId: deliveryIds[n] ?? undefined, ordinal: first + n },
    };
    return [{ event, isTaken: taken !== undefined }];
  });
};

type KeptNews =
  | [at: number, eventId: string, agent: string]
  | [at: number, eventIds: string[], agent: string, turnId: string]
  | ({ at: number } & GatewayNews);

export const readNews = ({ lastSeq, body }: EntriesRow): GatewayEntry[] => {
  const news = (JSON.parse(body) as KeptNews[]).flatMap((kept): ({ at: number } & GatewayNews)[] => {
    if (!Array.isArray(kept)) return [kept];
    const [at, of, agentName, turnId = ""] = kept;
    if (typeof of === "string") return [{ at, name: "event.queued", eventId: of, agentName }];
    return of.map((eventId) => ({ at, name: "event.handled", eventId, agentName, turnId }));
  });
  return news.map((one, n) => ({ seq: lastSeq - news.length + 1 + n, ...one }));
};

type KeptBody = string | [base64: string] | null;
/** A delivery on its own, or one of several that shared some values. */
type Whole = [kind: number, info: unknown[], headers: string, steps: unknown[][], body: KeptBody];
type Own = [kind: number, info: unknown[], steps: unknown[][], body: KeptBody];
type Head = [ids: string[], kinds: number[], weights: number[], sharedAt?: number[], shared?: unknown[][]];
type DeliveryValues = Omit<Delivery, "body" | "steps"> & Pick<DeliveryRecord, "turnId" | "sessionId" | "eventId">;

const LATER = "status mapping replayOf senderId turnId sessionId eventId";
const WHOLE = `deliveryId at surface operation method path address requestId caller bytes answer ${LATER}`;
const OWN = `deliveryId at requestId bytes ${LATER}`;
const SHARED = "surface operation method path address caller answer headers";

/** The deliveries that were recorded together, without those that have gone. `stepsOf` tells the steps that were added later. */
export const readDeliveries = (
  { first, head, body, places }: { first: number; head: string; body: string; places: string | undefined },
  stepsOf: (place: number) => string | undefined,
): DeliveryRecord[] => {
  const gone = new Set(places === undefined ? [] : (JSON.parse(places) as number[]));
  const [, , , sharedAt = [], shared = []] = JSON.parse(head) as Head;
  return (JSON.parse(body) as (Whole | Own | 0)[]).flatMap((kept, n): DeliveryRecord[] => {
    const place = first + n;
    if (kept === 0 || gone.has(place)) return [];
    const values: DeliveryValues =
      kept.length === 5
        ? { ...named<DeliveryValues>(WHOLE, kept[1]), headers: kept[2] }
        : { ...named<DeliveryValues>(SHARED, shared[sharedAt[n] as number] ?? []), ...named<object>(OWN, kept[1]) };
    const { turnId, sessionId, eventId, ...of } = values;
    const later = stepsOf(place);
    const all = later === undefined ? (kept.at(-2) as unknown[][]) : (JSON.parse(later) as unknown[][]);
    const steps = all.map((step) => named<DeliveryStep>("at name detail", step));
    const delivery = { ...of, body: readBody(kept.at(-1) as KeptBody), steps };
    const work = { turnId, sessionId, eventId, messageId: undefined, agent: undefined };
    return [{ delivery, place, ...work, endedOrder: place }];
  });
};

const readBody = (body: KeptBody): string | undefined =>
  Array.isArray(body) ? Buffer.from(body[0], "base64").toString("latin1") : (body ?? undefined);
