import { NOWHERE } from "#kit/tables.ts";
import type { Surface, Turn, TurnError, TurnOrder, TurnStatus, Usage } from "#store/store.ts";
import type { TakenEvents } from "./events.ts";
import type { SessionRow, TurnRow } from "./rows.ts";

/** Undefined values are null in a body. */
type Kept<T> = T extends undefined ? null : T;

type OpenBody = [
  turnId: string,
  surface: Surface,
  caller: string,
  status: TurnStatus,
  attempt: number,
  createdAt: number,
  startedAt: number | null,
  model: string | null,
  skillIds: readonly string[],
  messageId: string,
  seq: number,
  usage: Usage | null,
  deliveryId: string | null,
  waited: boolean,
  countedModel: string,
  announce: Kept<TurnOrder["announce"]>,
  events: Kept<TakenEvents | undefined>,
  replyMessageId: string,
  spentMs: number,
  due: number,
  node: string,
  cancelled: boolean,
];

/** A clock that was set back while the gateway was down must not hold a turn for ever. */
const LONGEST_DELAY_MS = 3_600_000;

export const encodeOpenTurn = (row: TurnRow, offset: number): string =>
  JSON.stringify([
    row.turnId,
    row.surface,
    row.caller,
    row.status,
    row.attempt,
    row.createdAt,
    row.startedAt ?? null,
    row.model ?? null,
    row.skillIds,
    row.messageId,
    row.seq,
    row.usage ?? null,
    row.deliveryId ?? null,
    row.waited,
    row.countedModel,
    row.announce ?? null,
    row.events ?? null,
    row.replyMessageId,
    row.spentMs,
    row.due === 0 ? 0 : row.due + offset,
    row.node,
    row.cancelled,
  ] satisfies OpenBody);

export const decodeOpenTurn = (
  place: number,
  session: SessionRow,
  body: string,
  { offset, time }: { offset: number; time: number },
): TurnRow => {
  const [turnId, surface, caller, status, attempt, createdAt, startedAt, model, skillIds, messageId, seq, ...rest] =
    JSON.parse(body) as OpenBody;
  const [usage, deliveryId, waited, countedModel, announce, events, ...run] = rest;
  const [replyMessageId, spentMs, due, node, cancelled] = run;
  const { sessionId, agent } = session;
  return {
    ...{ turnId, sessionId, agent, surface, caller, status, attempt, createdAt, startedAt: startedAt ?? undefined },
    ...{ endedAt: undefined, model: model ?? undefined, skillIds, messageId, seq, reply: undefined, error: undefined },
    ...{ usage: usage ?? undefined, deliveryId: deliveryId ?? undefined, place, session },
    ...{ waited, countedModel },
    ...{ announce: announce ?? undefined, events: events ?? undefined, replyMessageId, spentMs, leaseEnds: 0, node },
    ...{ due: due === 0 ? 0 : Math.min(due - offset, time + LONGEST_DELAY_MS), cancelled, at: NOWHERE },
    ...{ isDirty: false, isStored: true, isGone: false },
  };
};

type EndedBody = [
  surface: Surface,
  caller: string,
  status: TurnStatus,
  attempt: number,
  createdAt: number,
  startedAt: number | null,
  endedAt: number | null,
  model: string | null,
  skillIds: readonly string[],
  messageId: string,
  seq: number,
  replySeq: number,
  error: TurnError | null,
  usage: Usage | null,
  deliveryId: string | null,
];

/** A turn that has ended. Its reply stays in the journal, at `replySeq`; 0 where it has none. */
export const encodeEndedTurn = (turn: TurnRow, replySeq: number): string =>
  JSON.stringify([
    turn.surface,
    turn.caller,
    turn.status,
    turn.attempt,
    turn.createdAt,
    turn.startedAt ?? null,
    turn.endedAt ?? null,
    turn.model ?? null,
    turn.skillIds,
    turn.messageId,
    turn.seq,
    replySeq,
    turn.error ?? null,
    turn.usage ?? null,
    turn.deliveryId ?? null,
  ] satisfies EndedBody);

/** `replySeq`: where the journal has its reply. */
export type EndedTurn = { turn: Turn; replySeq: number };

export const deliveryIdIn = (body: string): string | undefined => (JSON.parse(body) as EndedBody)[14] ?? undefined;

export const decodeEndedTurn = (turnId: string, { sessionId, agent }: SessionRow, body: string): EndedTurn => {
  const [surface, caller, status, attempt, createdAt, startedAt, endedAt, model, skillIds, messageId, seq, ...rest] =
    JSON.parse(body) as EndedBody;
  const [replySeq, error, usage, deliveryId] = rest;
  const turn: Turn = {
    ...{ turnId, sessionId, agent, surface, caller, status, attempt, createdAt, startedAt: startedAt ?? undefined },
    ...{ endedAt: endedAt ?? undefined, model: model ?? undefined, skillIds, messageId, seq, reply: undefined },
    error: error ? { name: error.name, detail: error.detail } : undefined,
    usage: usage ?? undefined,
    deliveryId: deliveryId ?? undefined,
  };
  return { turn, replySeq };
};
