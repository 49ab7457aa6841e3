/** How rows were packed up to version 3: values by their places in JSON. Nothing else reads them. */
import type { DeliveryRecord, EventRecord, OpenTurnRecord, SessionRecord, TurnRecord } from "#store/rules/records.ts";
import type {
  Delivery,
  DeliveryAnswer,
  Entry,
  EventStatus,
  GatewayEntry,
  GatewayNews,
  MoreUsage,
  Role,
  Surface,
  TurnError,
  TurnOrder,
  TurnStatus,
  Usage,
} from "#store/store.ts";
import { usageOf } from "#store/views.ts";

const MINUTE = 60_000;
/** In the place of a value, it stood for the one of the entry before. */
const SAME = 0;

type Packed = [kind: number, at: number, turnId: string | typeof SAME, ...rest: unknown[]];

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

/** The entries of a row of a journal, of which the last has `lastSeq`. */
export const readEntries = (body: string, lastSeq: number): Entry[] => {
  const packed = unpack(body);
  const entries: Entry[] = [];
  for (const [n, one] of packed.entries()) {
    entries.push(readEntry(one, lastSeq - packed.length + 1 + n, entries.at(-1)));
  }
  return entries;
};

type More = { more?: MoreUsage; model?: string };

const readEntry = ([kind, time, turn, ...rest]: Packed, seq: number, before: Entry | undefined): Entry => {
  const at = time === SAME && before ? before.at : time;
  const base = { seq, at, turnId: turn === SAME ? (before?.turnId ?? "") : turn };
  switch (kind) {
    case 0: {
      const [messageId, role, text, outside, context] = rest as [string, Role, string, number, string | null];
      const of = { messageId, role, text, outside: outside === 1, context: context ?? undefined };
      return { ...base, name: "message.created", ...of };
    }
    case 1: {
      const [messageId, text] = rest as [string, string];
      return { ...base, name: "message.completed", messageId, text };
    }
    case 2:
      return { ...base, name: "turn.queued" };
    case 3:
      return { ...base, name: "turn.started", attempt: rest[0] as number };
    case 5: {
      const [input, output, name, detail, of] = rest as [number, number, TurnError["name"], string | null, More?];
      const error = { name, detail: detail ?? undefined };
      return { ...base, name: "turn.failed", usage: usageOf(input, output, of?.more), error, model: of?.model };
    }
    case 7: {
      const [messages, tokens, messagesAfter, tokensAfter] = rest as [number, number, number, number];
      const after = { messages: messagesAfter, tokens: tokensAfter };
      return { ...base, name: "session.compacted", before: { messages, tokens }, after };
    }
    default: {
      const [input, output, said, of] = rest as [number, number, string | typeof SAME, More?];
      const text = before?.name === "message.completed" ? before.text : "";
      const usage = usageOf(input, output, of?.more);
      const reply = said === SAME ? text : said;
      return { ...base, name: kind === 4 ? "turn.completed" : "turn.cancelled", usage, reply, model: of?.model };
    }
  }
};

export type SessionRow = [ordinal: number, sessionId: string, agent: string, head: number | null, body: string];
type SessionBody = [
  ...[channel: string, userId: string, createdAt: number, updatedAt: number, firstSeq: number, lastSeq: number],
  ...[messages: number, compacted: number, input: number, output: number, contextBytes: number, more?: MoreUsage],
];

export const readSession = (
  [ordinal, sessionId, agent, head, text]: SessionRow,
  turnsQueued: number,
): SessionRecord => {
  const body = JSON.parse(text) as SessionBody;
  const [channel, userId, createdAt, updatedAt, firstSeq, lastSeq, messageCount, compactedCount, ...rest] = body;
  const [input, output, contextBytes, more] = rest;
  const usage = usageOf(input, output, more);
  const times = { createdAt, updatedAt, lastSeq, firstSeq };
  const session = {
    sessionId,
    agent,
    channel,
    userId,
    ...times,
    messageCount,
    turnsQueued,
    usage,
    ordinal,
    contextBytes,
  };
  return { session, compactedCount, headDueAt: head === null ? undefined : head * MINUTE };
};

type OfTurn = { sessionId: string; agent: string; ordinal: number };
type OpenBody = [
  ...[turnId: string, surface: Surface, caller: string, status: TurnStatus, attempt: number, createdAt: number],
  ...[startedAt: number | null, model: string | null, skillIds: string[], messageId: string, seq: number],
  ...[usage: Usage | null, deliveryId: string | null, waited: boolean, countedModel: string],
  ...[announce: TurnOrder["announce"] | null, events: TakenEvents | null, replyMessageId: string, spentMs: number],
  ...[due: number, node: string, cancelled: boolean],
];
type TakenEvents = { ordinals: number[]; maxAttempts: number; streamKeep: number };

export const takenBy = (body: string): { turnId: string; ordinals: readonly number[] } => {
  const open = JSON.parse(body) as OpenBody;
  return { turnId: open[0], ordinals: open[16]?.ordinals ?? [] };
};

/** `idOf` tells the id of an event by its ordinal. */
export const readOpenTurn = (
  place: number,
  { sessionId, agent, ordinal }: OfTurn,
  body: string,
  idOf: (ordinal: number) => string,
): OpenTurnRecord => {
  const [turnId, surface, caller, status, attempt, createdAt, startedAt, model, skillIds, messageId, seq, ...rest] =
    JSON.parse(body) as OpenBody;
  const [usage, deliveryId, waited, countedModel, announce, events, ...run] = rest;
  const [replyMessageId, spentMs, due, node, isCancelled] = run;
  const taken = events ? { ...events, ids: events.ordinals.map(idOf) } : undefined;
  return {
    turn: {
      ...{ turnId, sessionId, agent, surface, caller, status, attempt, createdAt, startedAt: startedAt ?? undefined },
      ...{
        endedAt: undefined,
        model: model ?? undefined,
        skillIds,
        messageId,
        seq,
        reply: undefined,
        error: undefined,
      },
      ...{ usage: usage ?? undefined, deliveryId: deliveryId ?? undefined },
    },
    ordinal,
    place,
    replySeq: 0,
    open: {
      ...{ waited, countedModel, replyMessageId, spentMs, isCancelled, readyOrder: undefined },
      announce: announce ?? undefined,
      events: taken && { ids: taken.ids, maxAttempts: taken.maxAttempts, streamKeep: taken.streamKeep },
      dueAt: due === 0 ? undefined : due,
      lease: status === "running" ? { node, endsAt: 0 } : undefined,
    },
  };
};

type EndedBody = [
  ...[surface: Surface, caller: string, status: TurnStatus, attempt: number, createdAt: number],
  ...[startedAt: number | null, endedAt: number | null, model: string | null, skillIds: string[], messageId: string],
  ...[seq: number, replySeq: number, error: TurnError | null, usage: Usage | null, deliveryId: string | null],
];

export const readEndedTurn = (turnId: string, { sessionId, agent, ordinal }: OfTurn, body: string): TurnRecord => {
  const [surface, caller, status, attempt, createdAt, startedAt, endedAt, model, skillIds, messageId, ...rest] =
    JSON.parse(body) as EndedBody;
  const [seq, replySeq, error, usage, deliveryId] = rest;
  const turn = {
    ...{ turnId, sessionId, agent, surface, caller, status, attempt, createdAt, startedAt: startedAt ?? undefined },
    ...{ endedAt: endedAt ?? undefined, model: model ?? undefined, skillIds, messageId, seq, reply: undefined },
    ...{ error: error ?? undefined, usage: usage ?? undefined, deliveryId: deliveryId ?? undefined },
  };
  return { turn, ordinal, place: 0, replySeq, open: undefined };
};

const STATUSES: readonly EventStatus[] = ["queued", "handled", "dead"];
/** An event that is gone left its place empty. */
const GONE = 3;

type EventHead = [ids: string[], agents: string | string[], deliveryIds: (string | null)[]];
type EventBody = [text: string, metadata: string | null, caller: string, createdAt: number];
/** Events that were alike shared a state; the length alone stood for the ones that wait as they came. */
type EventStates = [
  count: number,
  state?: number,
  attempts?: number,
  endedAt?: number | null,
  turnId?: string | null,
  reason?: string | null,
][];

/** The events that were queued together. `takenOf` tells the turn that works on an event. */
export const readEvents = (
  [first, head, body, states]: [first: number, head: string, body: string, states: string],
  takenOf: (ordinal: number) => string | undefined,
): EventRecord[] => {
  const [ids, agents, deliveryIds] = JSON.parse(head) as EventHead;
  const bodies = JSON.parse(body) as (EventBody | 0)[];
  const all = (JSON.parse(states) as EventStates).flatMap((run) => Array.from({ length: run[0] }, () => run));
  return ids.flatMap((eventId, n): EventRecord[] => {
    const [, state = 0, attempts = 0, endedAt, turnId, reason] = all[n] ?? [1];
    const kept = bodies[n];
    if (state === GONE || !kept) return [];
    const [text, metadata, caller, createdAt] = kept;
    const taken = takenOf(first + n);
    const event = {
      ...{ eventId, agent: typeof agents === "string" ? agents : (agents[n] as string), text },
      ...{ metadata: metadata ?? undefined, caller, status: STATUSES[state] as EventStatus, attempts, createdAt },
      ...{ endedAt: endedAt ?? undefined, turnId: taken ?? turnId ?? undefined, reason: reason ?? undefined },
      ...{ deliveryId: deliveryIds[n] ?? undefined, ordinal: first + n },
    };
    return [{ event, isTaken: taken !== undefined }];
  });
};

type KeptNews =
  | [at: number, eventId: string, agent: string]
  | [at: number, eventIds: string[], agent: string, turnId: string]
  | ({ at: number } & GatewayNews);

/** The entries of a row of the gateway's stream, of which the last has `lastSeq`. */
export const readNews = (body: string, lastSeq: number): GatewayEntry[] => {
  const news = (JSON.parse(body) as KeptNews[]).flatMap((kept): ({ at: number } & GatewayNews)[] => {
    if (!Array.isArray(kept)) return [kept];
    const [at, of, agentName, turnId = ""] = kept;
    if (typeof of === "string") return [{ at, name: "event.queued", eventId: of, agentName }];
    return of.map((eventId) => ({ at, name: "event.handled", eventId, agentName, turnId }));
  });
  return news.map((one, n) => ({ seq: lastSeq - news.length + 1 + n, ...one }));
};

type KeptStep = [at: number, name: string, detail: string | null];
type KeptBody = string | [base64: string] | null;
type Info = [
  ...[deliveryId: string, at: number, surface: Surface, operation: string, method: string, path: string],
  ...[address: string, requestId: string, caller: string, bytes: number, answer: DeliveryAnswer, status: number | null],
  ...[mapping: string | null, replayOf: string | null, senderId: string | null],
  ...[turnId: string | null, sessionId: string | null, eventId: string | null],
];
type Shared = [
  ...[surface: Surface, operation: string, method: string, path: string, address: string, caller: string],
  ...[answer: DeliveryAnswer, headers: string],
];
type Whole = [kind: number, info: Info, headers: string, steps: KeptStep[], body: KeptBody];
type Own = [
  kind: number,
  own: [deliveryId: string, at: number, requestId: string, bytes: number, ...rest: unknown[]],
  steps: KeptStep[],
  body: KeptBody,
];
type Head = [ids: string[], kinds: number[], weights: number[], sharedAt?: number[], shared?: Shared[]];

const wholeOf = (kept: Whole | Own, shared: Shared): Whole => {
  if (kept.length === 5) return kept;
  const [kind, [deliveryId, at, requestId, bytes, ...rest], steps, body] = kept;
  const [surface, operation, method, path, address, caller, answer, headers] = shared;
  const way = [surface, operation, method, path, address, requestId, caller, bytes, answer] as const;
  return [kind, [deliveryId, at, ...way, ...rest] as Info, headers, steps, body];
};

/** The deliveries that were recorded together, without those that have gone. `stepsOf` tells the steps that were added later. */
export const readDeliveries = (
  [first, headText, bodyText]: [first: number, head: string, body: string],
  gone: ReadonlySet<number>,
  stepsOf: (place: number) => string | undefined,
): DeliveryRecord[] => {
  const [, , , sharedAt = [], shared = []] = JSON.parse(headText) as Head;
  const bodies = JSON.parse(bodyText) as (Whole | Own | 0)[];
  return bodies.flatMap((kept, n): DeliveryRecord[] => {
    const place = first + n;
    if (kept === 0 || gone.has(place)) return [];
    const [, info, headers, steps, body] = wholeOf(kept, shared[sharedAt[n] as number] as Shared);
    const later = stepsOf(place);
    return [readDelivery(place, info, { headers, body, steps: later ? (JSON.parse(later) as KeptStep[]) : steps })];
  });
};

const readDelivery = (
  place: number,
  info: Info,
  { headers, body, steps }: { headers: string; body: KeptBody; steps: KeptStep[] },
): DeliveryRecord => {
  const [deliveryId, at, surface, operation, method, path, address, requestId, caller, bytes, answer, ...rest] = info;
  const [status, mapping, replayOf, senderId, turnId, sessionId, eventId] = rest;
  const delivery: Delivery = {
    ...{ deliveryId, at, surface, operation, method, path, address, requestId, caller, headers, bytes, answer },
    ...{ body: readBody(body), status: status ?? undefined, mapping: mapping ?? undefined },
    ...{ replayOf: replayOf ?? undefined, senderId: senderId ?? undefined },
    steps: steps.map(([time, name, detail]) => ({ at: time, name, detail: detail ?? undefined })),
  };
  const work = { turnId: turnId ?? undefined, sessionId: sessionId ?? undefined, eventId: eventId ?? undefined };
  return { delivery, place, ...work, endedOrder: place };
};

const readBody = (body: KeptBody): Uint8Array | undefined => {
  if (body === null) return undefined;
  return typeof body === "string" ? Buffer.from(body, "latin1") : Buffer.from(body[0], "base64");
};
