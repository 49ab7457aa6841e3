import { addMore, addUsage, NO_USAGE } from "#kit/usages.ts";
import type { TurnEnd, UsageRow } from "#store/store.ts";
import { endEntries, hasReply } from "../turn-orders.ts";
import { announce } from "./announcements.ts";
import { passOn } from "./compactions.ts";
import { finishDelivery } from "./deliveries.ts";
import { endEvents } from "./events.ts";
import type { QueueRow, TurnRow } from "./rows.ts";
import { append, forgetTold, type State, tell, tellGateway, tellOf } from "./state.ts";

const NO_SEQ = 0;

export const cancelledAt = (now: number): TurnEnd => {
  return { now, status: "cancelled", reply: "", error: undefined, usage: undefined };
};

/** Ends a queued or running turn, and lets the next of its session begin. `teller`: who tells the watchers of its entries. */
export const finish = (state: State, row: TurnRow, end: TurnEnd, teller: "worker" | "caller" = "worker"): void => {
  const { session, turnId, replyMessageId } = row;
  const { now, status, reply, error, model, usage } = end;
  const isReplied = row.status === "running" && hasReply(end);
  if (usage) countUsage(state, row, now, usage);
  state.usage.turn(now, row, usage?.model ?? row.countedModel, status);
  const used = row.usage ?? NO_USAGE;
  const of = { turnId, at: now, status, reply, error, model, usage: used };
  append(state, session, endEntries({ ...of, replyMessageId: isReplied ? replyMessageId : undefined }, NO_SEQ));
  if (isReplied) {
    session.messageCount++;
    session.contextBytes += Buffer.byteLength(reply);
  }
  state.agents.noteEnd(row, now, status, error);
  state.turns.delete(row);
  row.status = status;
  row.endedAt = now;
  row.reply = isReplied ? reply : undefined;
  row.error = error;
  row.usage = used;
  row.model = model ?? row.model;
  state.ended.add(row, session.ordinal, isReplied ? session.lastSeq - 1 : 0);
  finishDelivery(state, row.deliveryId);
  const next = leaveQueue(row);
  if (row.events) endEvents(state, row, { now, status, error });
  const isAnnounced = row.announce?.channel !== undefined && status === "completed";
  if (isAnnounced) announce(state, row, now);
  if (teller === "worker") tell(state, session);
  else forgetTold(state);
  tellGateway(state);
  if (isAnnounced) tellOf(state, "announcement");
  if (next) passOn(state, next);
};

/** Adds what an attempt used to its turn, its session and the counters. */
export const countUsage = (state: State, row: TurnRow, now: number, used: UsageRow): void => {
  const { input, output, more } = used.usage;
  row.usage = addUsage(row.usage, used.usage);
  row.session.input += input;
  row.session.output += output;
  if (more) row.session.more = addMore(row.session.more, more);
  state.sessions.touch(row.session);
  state.usage.attempt(now, row, used);
};

/** Gives a running turn back to the head of its session's queue, not to be claimed before `due`. */
export const requeue = (state: State, row: TurnRow, now: number, due: number): void => {
  const { session, turnId } = row;
  if (row.cancelled) {
    finish(state, row, cancelledAt(now));
    return;
  }
  row.due = due;
  state.turns.move(row, "queued");
  append(state, session, [{ seq: NO_SEQ, at: now, turnId, name: "turn.queued" }]);
  if (due > 0) state.ready.pushLater(row);
  else state.ready.push(row);
  tell(state, session);
  tellOf(state, "work");
};

/** Answers who is first now, when it was not before. */
export const leaveQueue = (row: QueueRow): QueueRow | undefined => {
  const { session } = row;
  const wasFirst = session.queue[0] === row;
  session.queue = session.queue.filter((other) => other !== row);
  return wasFirst ? session.queue[0] : undefined;
};
