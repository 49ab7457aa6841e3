import { type Broken, breach } from "./breaches.ts";
import type { Found, FoundSession } from "./found.ts";
import { markersIn, type Order } from "./orders.ts";

const PROMISE = "order in each session";

/** The messages of one session: in order, once each, a reply behind what it answers, and in the order in which they were acknowledged. */
export const verifySession = (
  session: FoundSession,
  { turns }: Found,
  ordersOf: ReadonlyMap<string, Order>,
): Broken[] => {
  const { sessionId, messages, messageCount } = session;
  const broken: Broken[] = [];
  const say = (words: string, ...ids: string[]) => broken.push(breach(PROMISE, words, sessionId, ...ids));
  if (messages.length !== messageCount) say(`it counts ${messageCount} messages and shows ${messages.length}`);
  const ids = new Set<string>();
  const replies = new Map<string, number>();
  const asked = new Set<string>();
  let before = 0;
  for (const { messageId, seq, role, turnId } of messages) {
    if (ids.has(messageId)) say("a message is there twice", messageId);
    ids.add(messageId);
    if (seq <= before) say(`a message with seq ${seq} is behind one with ${before}`, messageId);
    before = Math.max(before, seq);
    if (role === "user") asked.add(turnId);
    else if (!asked.has(turnId)) say("a reply is before its message", messageId, turnId);
    else replies.set(turnId, (replies.get(turnId) ?? 0) + 1);
  }
  for (const turnId of asked) {
    const turn = turns.get(turnId);
    const count = replies.get(turnId) ?? 0;
    if (!turn)
      broken.push(breach("every acknowledged id exists", "a message's turn cannot be read", turnId, sessionId));
    else if (count > 1)
      broken.push(breach("each turn ends exactly once", `it has ${count} replies`, turnId, sessionId));
    else if (turn.status === "completed" && count === 0) say("a turn that completed has no reply", turnId);
  }
  return [...broken, ...verifySentOrder(session, ordersOf)];
};

/** What was acknowledged before something else was sent is before it. */
const verifySentOrder = ({ sessionId, messages }: FoundSession, ordersOf: ReadonlyMap<string, Order>): Broken[] => {
  const broken: Broken[] = [];
  let [soonest, soonestMarker] = [Number.POSITIVE_INFINITY, ""];
  for (const { role, text } of messages.toReversed()) {
    if (role !== "user") continue;
    // A beat's message holds many; their order is their own matter.
    const [marker = "", ...others] = markersIn(text);
    const order = ordersOf.get(marker);
    if (!order || others.length > 0 || order.kind === "wake") continue;
    if (order.sentAt > soonest)
      broken.push(
        breach(PROMISE, "what was sent later is before what was acknowledged sooner", sessionId, marker, soonestMarker),
      );
    if (order.ackedAt !== undefined && order.ackedAt < soonest) [soonest, soonestMarker] = [order.ackedAt, marker];
  }
  return broken;
};
