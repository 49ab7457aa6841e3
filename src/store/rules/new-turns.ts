/** The parts of a new turn: the checks before it is stored, its record and its message. */
import type { BeatTask, Entry, StoreLimits, TurnOrder } from "#store/store.ts";
import { NO_SEQ } from "./journal.ts";
import { leaseFor } from "./leases.ts";
import { checkBytes, refuse } from "./limits.ts";
import type { OpenTurnRecord, Records, SessionRecord } from "./records.ts";
import { checkTurnShare } from "./shares.ts";

const TURN_FREES = "A new turn is accepted when one of them starts or is cancelled.";
const SESSION_FREES = "Compact the session, or use another one.";

/** Refuses a turn for which its session, the gateway or the share of its caller has no room. */
export function checkSession(records: Records, known: SessionRecord | undefined, order: TurnOrder): void {
  const { session, limits } = order;
  if (known && known.session.agent !== session.agent) {
    throw refuse("session-conflict", `The session belongs to the agent ${known.session.agent}.`);
  }
  if (known) checkRoom(known, limits);
  const { queued } = records.totals.open;
  if (queued >= limits.turns) {
    throw refuse("gateway-busy", `limits.turns is reached: ${queued} turns are waiting. ${TURN_FREES}`);
  }
  checkBytes(records, limits.storeBytes);
  checkTurnShare(records, order, limits);
}

function checkRoom(
  { session: { turnsQueued, messageCount }, compactedCount }: SessionRecord,
  limits: StoreLimits,
): void {
  if (turnsQueued >= limits.turnsPerSession) {
    const waiting = `${turnsQueued} turns are waiting in the session`;
    throw refuse("session-busy", `limits.turnsPerSession is reached: ${waiting}. ${TURN_FREES}`);
  }
  const messages = messageCount - compactedCount;
  if (messages >= limits.messagesPerSession) {
    throw refuse(
      "session-full",
      `limits.messagesPerSession is reached: the session holds ${messages} messages. ${SESSION_FREES}`,
    );
  }
}

type MessageOrder = Pick<TurnOrder, "now" | "turnId" | "messageId" | "text" | "outside" | "context">;

/** The message of a turn in the journal. */
export function messageEntry({ now, turnId, messageId, text, outside, context }: MessageOrder): Entry {
  return {
    seq: NO_SEQ,
    at: now,
    turnId,
    name: "message.created",
    messageId,
    role: "user",
    text,
    outside,
    context,
  };
}

/** A turn that is claimed at once, or queued. `isFirst`: no turn of its session is before it. */
export function newTurn(
  records: Records,
  order: TurnOrder,
  { session }: SessionRecord,
  claim: TurnOrder["claim"],
  isFirst: boolean,
  preview: string,
  task: BeatTask | undefined,
  bytes: number | undefined,
): OpenTurnRecord {
  return {
    turn: {
      turnId: order.turnId,
      sessionId: session.sessionId,
      agent: session.agent,
      surface: order.surface,
      caller: order.caller,
      status: claim ? "running" : "queued",
      attempt: claim ? 1 : 0,
      createdAt: order.now,
      startedAt: claim && order.now,
      endedAt: undefined,
      model: order.model,
      skillIds: order.skillIds,
      messageId: order.messageId,
      // Its `turn.queued` entry comes after its message.
      seq: session.lastSeq + 2,
      reply: undefined,
      error: undefined,
      usage: undefined,
      deliveryId: order.delivery?.deliveryId,
      preview,
      replyPreview: undefined,
      announcement: undefined,
    },
    ordinal: session.ordinal,
    place: records.next("place"),
    replySeq: 0,
    open: {
      waited: order.waited,
      countedModel: order.countedModel,
      task,
      announce: order.announce,
      replyMessageId: claim?.replyMessageId ?? "",
      spentMs: 0,
      isCancelled: false,
      readyOrder: isFirst && !claim ? records.next("order") : undefined,
      dueAt: undefined,
      lease: claim && leaseFor(records, claim.node, claim.leaseMs),
    },
    bytes,
  };
}
