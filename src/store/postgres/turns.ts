import { type ErrorName, GatewayError } from "#kit/errors.ts";
import type { Claim, ClaimedTurn, Entry, Store, Turn, TurnEnd, TurnOrder, TurnStart, UsageRow } from "#store/store.ts";
import { ringView, storeBytes } from "./deliveries.ts";
import { deliveryRow } from "./delivery-codec.ts";
import { type Frame, LANE } from "./frame.ts";
import { keepKey, keepOptional, keepText } from "./texts.ts";
import { type FoundTurn, readTurn } from "./turn-codec.ts";
import { keepUsage, type MoreRow, readUsage } from "./usage.ts";

type TurnMethods = Pick<
  Store,
  "startTurn" | "findReplay" | "endTurn" | "releaseTurn" | "cancelTurn" | "failQueuedTurns"
>;

export type Refused = { error: ErrorName; detail: string };
type Started = { session: number; contextBytes: number; seq: number; claimed: boolean };
type StartOutcome = Refused | { turn: FoundTurn } | Started;
/** What `end_turns` tells of a turn that it has finished: its order's place, and what its entries need beside what was ordered. */
type FinishedRow = [
  n: number,
  ordinal: number,
  agent: string,
  contextBytes: number,
  from: number,
  through: number,
  messageId: string,
  input: number,
  output: number,
  more: MoreRow | null,
];
type Ending = { claim: Claim; now: number; usage: UsageRow | undefined; end?: TurnEnd; delayMs?: number };

/** So many orders share a call, and so many calls are on their way at a time. */
const MOST = 100;
const AT_ONCE = 3;
const BUSY_HINT_MS = 1_000;
const FINAL: ReadonlySet<ErrorName> = new Set([
  "session-full",
  "session-conflict",
  "idempotency-mismatch",
  "turn-not-found",
  "internal",
]);

export const refusalOf = ({ error, detail }: Refused): GatewayError =>
  new GatewayError(error, detail, FINAL.has(error) ? {} : { retryAfterMs: BUSY_HINT_MS });

export const turnMethods = (frame: Frame): TurnMethods => {
  const start = frame.batcher<TurnOrder, StartOutcome>({
    most: MOST,
    atOnce: AT_ONCE,
    bytesOf: ({ text, delivery }) => text.length + (delivery?.bytes ?? 0),
    call: (orders, again) => ["start_turns", [...startArgs(frame, orders), again, LANE, frame.time()]],
    heard: ({ results }, orders) => {
      for (const [n, order] of orders.entries())
        tellStart(frame, order, (results as StartOutcome[])[n] as StartOutcome);
    },
  });
  const end = frame.batcher<Ending, boolean>({
    most: MOST,
    atOnce: AT_ONCE,
    bytesOf: (ending) => ending.end?.reply.length ?? 0,
    call: (endings, again) => ["end_turns", [JSON.stringify(endings.map(endingRow)), again, LANE, frame.time()]],
    heard: ({ finished }, endings) => {
      for (const one of finished as FinishedRow[]) tellEnd(frame, endings[one[0]] as Ending, one);
    },
  });

  return {
    startTurn: async (order) => {
      const outcome = await start(order, order.session.sessionId);
      if ("error" in outcome) throw refusalOf(outcome);
      if ("turn" in outcome) return { turn: readTurn(outcome.turn), replayed: true, claimed: undefined };
      return startOf(order, outcome);
    },

    findReplay: (key, now) => findReplay(frame, key, now),

    endTurn: (claim, ended) => end({ claim, now: ended.now, usage: ended.usage, end: ended }, claim.sessionId),

    releaseTurn: (claim, { now, delayMs, usage }) => end({ claim, now, usage, delayMs }, claim.sessionId),

    cancelTurn: async (turnId, now) => {
      const answer = await frame.call<Refused | { turn: FoundTurn }>("cancel_turn", [turnId, now, LANE, frame.time()]);
      if (!("error" in answer)) return readTurn(answer.turn);
      throw new GatewayError(answer.error, answer.detail, answer.error === "turn-ended" ? { turnId } : {});
    },

    failQueuedTurns: async (agent, { name, detail }, now) => {
      const args = [agent, name, keepOptional(detail) ?? null, now, LANE, frame.time()];
      return (await frame.call<{ failed: number }>("fail_queued_turns", args)).failed;
    },
  };
};

const findReplay = async (
  frame: Frame,
  { key, hash }: { key: string; hash: string },
  now: number,
): Promise<Turn | undefined> => {
  const found = await frame.call<Refused | { turn: FoundTurn } | null>("replay_turn", [keepKey(key), hash, now]);
  if (found && "error" in found) throw refusalOf(found);
  return found ? readTurn(found.turn) : undefined;
};

// What a turn weighs beside its texts, until its session is erased.
const TURN_BYTES = 800;

const startArgs = (frame: Frame, orders: readonly TurnOrder[]): unknown[] => {
  const deliveries = orders.flatMap(({ delivery, turnId, session }, order) =>
    delivery ? [deliveryRow(delivery, { order, kept: "turn", turnId, sessionId: session.sessionId })] : [],
  );
  const { recorder } = orders.at(-1) as TurnOrder;
  return [
    JSON.stringify(orders.map((order, n) => orderRow(frame, order, n))),
    JSON.stringify(deliveries),
    JSON.stringify(ringView(frame, recorder)),
  ];
};

const orderRow = (frame: Frame, order: TurnOrder, n: number) => {
  const { session, idempotency, limits, events, announce, claim, text, context } = order;
  const bytes = Buffer.byteLength(text);
  return {
    n,
    now: order.now,
    turn: order.turnId,
    message: order.messageId,
    session: keepText(session.sessionId),
    agent: session.agent,
    channel: keepText(session.channel),
    user: keepText(session.userId),
    surface: order.surface,
    caller: keepText(order.caller),
    text: keepText(text),
    bytes,
    size: bytes + Buffer.byteLength(context ?? "") + TURN_BYTES,
    outside: order.outside,
    context: keepOptional(context),
    model: keepOptional(order.model),
    counted: keepText(order.countedModel),
    skills: order.skillIds.map(keepText),
    waited: order.waited,
    key: idempotency && keepKey(idempotency.key),
    hash: idempotency?.hash,
    expires: idempotency?.expiresAt,
    delivery: keepOptional(order.delivery?.deliveryId),
    per_session: limits.turnsPerSession,
    messages: limits.messagesPerSession,
    // Of the whole gateway, as far as is known here.
    queued: frame.counts.of("queued"),
    most_queued: limits.turns,
    held: storeBytes(frame),
    most_held: limits.storeBytes,
    events: events?.ids,
    max_attempts: events?.maxAttempts,
    keep: events?.streamKeep,
    to: keepOptional(announce?.channel),
    hops: announce?.hops,
    node: claim?.node,
    lease: claim?.leaseMs,
    reply: claim?.replyMessageId,
    claim_now: claim?.now,
  };
};

const endingRow = ({ claim, now, usage, end, delayMs }: Ending, n: number) => ({
  n,
  turn: claim.turnId,
  session: keepText(claim.sessionId),
  node: claim.node,
  fence: claim.fence,
  now,
  status: end?.status,
  reply: end && keepText(end.reply),
  bytes: end && Buffer.byteLength(end.reply),
  error: end?.error?.name,
  detail: keepOptional(end?.error?.detail),
  used: usage && {
    model: keepText(usage.model),
    ...keepUsage(usage.usage),
    latency: usage.latencyMs,
    answered: keepOptional(end?.model),
  },
  delay: delayMs,
});

/** What an order came to, told from what was ordered: the database need not send it back. */
const startOf = (order: TurnOrder, { seq, claimed }: Started): TurnStart => {
  const { claim, turnId, session } = order;
  const turn: Turn = {
    turnId,
    sessionId: session.sessionId,
    agent: session.agent,
    surface: order.surface,
    caller: order.caller,
    status: claimed ? "running" : "queued",
    attempt: claimed ? 1 : 0,
    createdAt: order.now,
    startedAt: claimed ? claim?.now : undefined,
    endedAt: undefined,
    model: order.model,
    skillIds: order.skillIds,
    messageId: order.messageId,
    seq,
    reply: undefined,
    error: undefined,
    usage: undefined,
    deliveryId: order.delivery?.deliveryId,
  };
  if (!claimed || !claim) return { turn, replayed: false, claimed: undefined };
  const { text, outside, context } = order;
  const held: ClaimedTurn = {
    claim: { turnId, sessionId: session.sessionId, node: claim.node, fence: 1 },
    turn,
    message: { text, outside, context },
    replyMessageId: claim.replyMessageId,
    replySeq: seq + 2,
    spentMs: 0,
    hops: order.announce?.hops ?? 0,
  };
  return { turn, replayed: false, claimed: held };
};

const tellStart = (frame: Frame, order: TurnOrder, outcome: StartOutcome): void => {
  if (!("seq" in outcome)) return;
  const { now: at, turnId, messageId, text, outside, context, claim } = order;
  const { seq, session: ordinal, contextBytes, claimed } = outcome;
  const entries: Entry[] = [
    { seq: seq - 1, at, turnId, name: "message.created", messageId, role: "user", text, outside, context },
    { seq, at, turnId, name: "turn.queued" },
  ];
  if (claimed && claim) {
    const of = { at: claim.now, turnId };
    const reply = {
      messageId: claim.replyMessageId,
      role: "assistant",
      text: "",
      outside: false,
      context: undefined,
    } as const;
    entries.push(
      { seq: seq + 1, ...of, name: "turn.started", attempt: 1 },
      { seq: seq + 2, ...of, name: "message.created", ...reply },
    );
  }
  const { sessionId, agent } = order.session;
  frame.tellings.entries({ sessionId, agent, ordinal, contextBytes }, entries);
};

const tellEnd = (frame: Frame, { claim, now: at, end }: Ending, finished: FinishedRow): void => {
  if (!end) return;
  const [, ordinal, agent, contextBytes, from, through, messageId, input, output, more] = finished;
  const { turnId, sessionId } = claim;
  const of = { at, turnId };
  const hasReply = through > from;
  const reply = hasReply ? end.reply : "";
  const last = { seq: through, ...of, usage: readUsage(input, output, more), model: end.usage && end.model };
  const entries: Entry[] = hasReply ? [{ seq: from, ...of, name: "message.completed", messageId, text: reply }] : [];
  if (end.status === "failed") {
    const { name = "internal", detail } = end.error ?? {};
    entries.push({ ...last, name: "turn.failed", error: { name, detail } });
  } else entries.push({ ...last, name: `turn.${end.status}`, reply });
  frame.tellings.entries({ sessionId, agent, ordinal, contextBytes }, entries);
};
