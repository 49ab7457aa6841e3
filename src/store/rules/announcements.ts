import type { TurnAnnouncement } from "#store/store.ts";
import { addDeliveryStep, notifyOutcome } from "./deliveries.ts";
import { refuse } from "./limits.ts";
import { addOutgoing } from "./outgoing.ts";
import type { OpenTurnRecord, Records, Rule, TurnRecord } from "./records.ts";
import { findTurn, withReply } from "./turn-lookup.ts";

/** The turn has completed: its reply goes to the channel that its order named, if any. */
export function announceReply(
  records: Records,
  record: OpenTurnRecord,
  createdAt: number,
): TurnAnnouncement | undefined {
  const { channel, hops = 0, to, thread } = record.open.announce ?? {};
  return channel === undefined ? undefined : announce(records, record, { channel, hops, to, thread }, createdAt);
}

function announce(
  records: Records,
  { turn, ordinal }: TurnRecord,
  { channel, hops, to, thread }: Omit<TurnAnnouncement, "state" | "reason">,
  createdAt: number,
): TurnAnnouncement {
  const { turnId: id, sessionId, agent, deliveryId } = turn;
  const endpoint = `channel:${channel}` as const;
  addOutgoing(records, { id, endpoint, sessionId, agent, channel, hops, deliveryId, createdAt, attempts: 0 }, ordinal);
  return { channel, hops, to, thread, state: "waiting", reason: undefined };
}

export const announceAgain: Rule<"announceAgain"> = (records, turnId, { now, by, hops }) => {
  const record = findTurn(records, turnId);
  if (!record) throw refuse("turn-not-found", `No turn has the id ${turnId}.`);
  const { announcement, deliveryId } = record.turn;
  if (!announcement) throw refuse("reply-not-announceable", "The turn has no reply that was sent to a channel.");
  const { channel, state, to, thread } = announcement;
  if (records.outgoing.find(turnId)) {
    throw refuse("reply-not-announceable", `The reply is ${state} for the channel ${channel}. Wait for the result.`);
  }
  const again = announce(records, record, { channel, hops: Math.max(hops, announcement.hops), to, thread }, now);
  const after = { ...record, turn: { ...record.turn, announcement: again } };
  records.turns.put(after);
  if (deliveryId !== undefined) {
    const step = { at: now, name: "announcement.requeued", detail: JSON.stringify({ channel, by }) };
    addDeliveryStep(records, deliveryId, step);
    notifyOutcome(records, deliveryId);
  }
  return withReply(records, after);
};
