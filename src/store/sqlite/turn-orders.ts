/**
 * The two calls that every turn makes, as they go between the threads: values in a row, as names would cost more to send than what they
 * name. What watchers are told of them, the main side makes of its own orders.
 */
import type {
  Claim,
  ClaimedTurn,
  Entry,
  MoreUsage,
  SessionRef,
  Surface,
  Turn,
  TurnEnd,
  TurnOrder,
  TurnStart,
  Usage,
} from "#store/store.ts";
import { usageOf } from "#store/views.ts";
import { KINDS, type PackedDelivery, packDelivery } from "./delivery-codec.ts";

/** What is to be started, with its delivery as the recorder keeps it. */
export type StartOrder = Omit<TurnOrder, "delivery"> & { delivery: PackedDelivery | undefined };

type PackedStart = readonly [
  now: number,
  turnId: string,
  messageId: string,
  sessionId: string,
  agent: string,
  channel: string,
  userId: string,
  surface: Surface,
  caller: string,
  text: string,
  outside: boolean,
  context: string | undefined,
  model: string | undefined,
  countedModel: string,
  skillIds: readonly string[],
  waited: boolean,
  key: string | undefined,
  hash: string | undefined,
  expiresAt: number | undefined,
  turnsPerSession: number,
  turns: number,
  messagesPerSession: number,
  storeBytes: number,
  entries: number,
  bytes: number,
  refused: number,
  events: TurnOrder["events"],
  announce: TurnOrder["announce"],
  claimedAt: number | undefined,
  node: string | undefined,
  leaseMs: number | undefined,
  replyMessageId: string | undefined,
  delivery: PackedDelivery | undefined,
];

export const packStart = (order: TurnOrder): PackedStart => {
  const { turnId, session, idempotency, limits, recorder, claim, delivery } = order;
  return [
    order.now,
    turnId,
    order.messageId,
    session.sessionId,
    session.agent,
    session.channel,
    session.userId,
    order.surface,
    order.caller,
    order.text,
    order.outside,
    order.context,
    order.model,
    order.countedModel,
    order.skillIds,
    order.waited,
    idempotency?.key,
    idempotency?.hash,
    idempotency?.expiresAt,
    limits.turnsPerSession,
    limits.turns,
    limits.messagesPerSession,
    limits.storeBytes,
    recorder.entries,
    recorder.bytes,
    recorder.refused,
    order.events,
    order.announce,
    claim?.now,
    claim?.node,
    claim?.leaseMs,
    claim?.replyMessageId,
    delivery && packDelivery(delivery, { turnId, sessionId: session.sessionId }, KINDS.turn),
  ];
};

export const unpackStart = (packed: PackedStart): StartOrder => {
  const [now, turnId, messageId, sessionId, agent, channel, userId, surface, caller, text, outside, context] = packed;
  const [, , , , , , , , , , , , model, countedModel, skillIds, waited, key, hash = "", expiresAt = 0, ...more] =
    packed;
  const [turnsPerSession, turns, messagesPerSession, storeBytes, entries, bytes, refused, events, announce, ...of] =
    more;
  const [claimedAt, node = "", leaseMs = 0, replyMessageId = "", delivery] = of;
  return {
    now,
    turnId,
    messageId,
    session: { sessionId, agent, channel, userId },
    surface,
    caller,
    text,
    outside,
    context,
    model,
    countedModel,
    skillIds,
    waited,
    idempotency: key === undefined ? undefined : { key, hash, expiresAt },
    limits: { turnsPerSession, turns, messagesPerSession, storeBytes },
    recorder: { entries, bytes, refused },
    events,
    announce,
    claim: claimedAt === undefined ? undefined : { now: claimedAt, node, leaseMs, replyMessageId },
    delivery,
  };
};

/** Of a turn that was started: its session's numbers, the `seq` of its `turn.queued` entry, and whether it was claimed. */
export type StartAnswer = readonly [ordinal: number, contextBytes: number, seq: number, isClaimed: boolean];

const FIRST_FENCE = 1;

/** What `startTurn` answers, and the entries that it appended. */
export const startedOf = (
  order: TurnOrder,
  [ordinal, contextBytes, seq, isClaimed]: StartAnswer,
): { start: TurnStart; session: SessionRef; entries: Entry[] } => {
  const { now, turnId, messageId, text, outside, context, session, claim } = order;
  const { sessionId, agent } = session;
  const turn: Turn = {
    turnId,
    sessionId,
    agent,
    surface: order.surface,
    caller: order.caller,
    status: isClaimed ? "running" : "queued",
    attempt: isClaimed ? 1 : 0,
    createdAt: now,
    startedAt: isClaimed ? claim?.now : undefined,
    endedAt: undefined,
    model: order.model,
    skillIds: order.skillIds,
    messageId,
    seq,
    reply: undefined,
    error: undefined,
    usage: undefined,
    deliveryId: order.delivery?.deliveryId,
  };
  const entries: Entry[] = [
    { seq: seq - 1, at: now, turnId, name: "message.created", messageId, role: "user", text, outside, context },
    { seq, at: now, turnId, name: "turn.queued" },
  ];
  let claimed: ClaimedTurn | undefined;
  if (isClaimed && claim) {
    for (const entry of claimEntries(turnId, claim.now, FIRST_FENCE, claim.replyMessageId, seq)) entries.push(entry);
    claimed = {
      claim: { turnId, sessionId, node: claim.node, fence: FIRST_FENCE },
      turn,
      message: { text, outside, context },
      replyMessageId: claim.replyMessageId,
      replySeq: seq + 2,
      spentMs: 0,
      hops: order.announce?.hops ?? 0,
    };
  }
  return {
    start: { turn, replayed: false, claimed },
    session: { sessionId, agent, ordinal, contextBytes },
    entries,
  };
};

/** The entries that tell of a claim, behind the one with `lastSeq`. */
export const claimEntries = (
  turnId: string,
  at: number,
  attempt: number,
  messageId: string,
  lastSeq: number,
): [Entry, Entry] => {
  const reply = { messageId, role: "assistant", text: "", outside: false, context: undefined } as const;
  return [
    { seq: lastSeq + 1, at, turnId, name: "turn.started", attempt },
    { seq: lastSeq + 2, at, turnId, name: "message.created", ...reply },
  ];
};

/** Of a turn that was ended: its agent, its session's numbers, what all of its attempts used, and the id of its reply. */
export type EndAnswer = readonly [
  agent: string,
  ordinal: number,
  contextBytes: number,
  lastSeq: number,
  input: number,
  output: number,
  replyMessageId: string,
  more: MoreUsage | undefined,
];

export type PackedEnd = readonly [...claim: [string, string, string, number], ...end: EndValues];
type EndValues = [
  now: number,
  status: TurnEnd["status"],
  reply: string,
  error: TurnEnd["error"],
  usage: TurnEnd["usage"],
  model: string | undefined,
];

export const packEnd = (claim: Claim, { now, status, reply, error, usage, model }: TurnEnd): PackedEnd => {
  return [claim.turnId, claim.sessionId, claim.node, claim.fence, now, status, reply, error, usage, model];
};

export const unpackEnd = ([turnId, sessionId, node, fence, ...end]: PackedEnd): { claim: Claim; end: TurnEnd } => {
  const [now, status, reply, error, usage, model] = end;
  return { claim: { turnId, sessionId, node, fence }, end: { now, status, reply, error, usage, model } };
};

/** The entries that `endTurn` appended. */
export const endedOf = (
  { turnId, sessionId }: Claim,
  { now: at, status, reply, error, model }: TurnEnd,
  [agent, ordinal, contextBytes, lastSeq, input, output, replyMessageId, more]: EndAnswer,
): { session: SessionRef; entries: Entry[] } => {
  const usage = usageOf(input, output, more);
  return {
    session: { sessionId, agent, ordinal, contextBytes },
    entries: endEntries({ turnId, at, status, reply, error, model, usage, replyMessageId }, lastSeq),
  };
};

export type EndOf = Pick<TurnEnd, "status" | "reply" | "error" | "model"> & {
  turnId: string;
  at: number;
  usage: Usage;
  /** Undefined for a turn that did not run: it has no reply. */
  replyMessageId: string | undefined;
};

const ENDED = { completed: "turn.completed", cancelled: "turn.cancelled" } as const;
const UNKNOWN = { name: "turn-failed", detail: undefined } as const;

/** The entries that tell of a turn's end, the last of them with `lastSeq`. */
export const endEntries = (of: EndOf, lastSeq: number): Entry[] => {
  const { turnId, at, status, reply, error, model, usage, replyMessageId } = of;
  const end: Entry =
    status === "failed"
      ? { seq: lastSeq, at, turnId, name: "turn.failed", usage, error: error ?? UNKNOWN, model }
      : { seq: lastSeq, at, turnId, name: ENDED[status], usage, reply, model };
  if (replyMessageId === undefined || !hasReply(of)) return [end];
  return [{ seq: lastSeq - 1, at, turnId, name: "message.completed", messageId: replyMessageId, text: reply }, end];
};

/** A reply is kept unless it is empty and the turn did not complete. */
export const hasReply = ({ status, reply }: Pick<TurnEnd, "status" | "reply">): boolean =>
  status === "completed" || reply !== "";
