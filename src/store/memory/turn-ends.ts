import { addMore, addUsage, NO_USAGE } from "#kit/usages.ts";
import type { Entry, TurnEnd, TurnError, UsageRow } from "#store/store.ts";
import { noteEnd } from "./agent-counters.ts";
import { announce, tellAnnouncement } from "./announcements.ts";
import { passOn } from "./compactions.ts";
import { KEPT } from "./delivery-codec.ts";
import { endEvents } from "./events.ts";
import { NO_SEQ, type TurnRow } from "./rows.ts";
import { append, leaveQueue, type State, tell, tellGateway, tellWork } from "./state.ts";

const ENDED = { completed: "turn.completed", cancelled: "turn.cancelled" } as const;

export const cancelledAt = (now: number): TurnEnd => {
  return { now, status: "cancelled", reply: "", error: undefined, usage: undefined };
};

/** Ends a queued or running turn, its events with it, and makes the next of its session ready. */
export const finish = (state: State, row: TurnRow, end: TurnEnd): void => {
  // Apart from what every turn runs through, as in `startWithEvents`.
  finishTurn(state, row, end);
  if (!row.events) return;
  endEvents(state, row, end);
  tellGateway(state);
};

const finishTurn = (state: State, row: TurnRow, { now, status, reply, error, model, usage }: TurnEnd): void => {
  const { session, turnId, replyMessageId: messageId } = row;
  const replyBefore = row.status === "running" && (status === "completed" || reply !== "");
  if (replyBefore) {
    const bytes = Buffer.byteLength(reply);
    const said: Entry = { seq: NO_SEQ, at: now, turnId, name: "message.completed", messageId, text: reply };
    append(state, session, said, undefined, false, bytes);
    session.messageCount++;
    session.contextBytes += bytes;
  }
  noteEnd(row, now, status, error);
  if (row.status === "running") {
    state.running.delete(row);
  } else {
    session.turnsQueued--;
    state.queued--;
  }
  if (usage) countUsage(state, row, now, usage);
  state.usage.turn(now, row, usage?.model ?? row.countedModel, status);
  const used = row.usage ?? NO_USAGE;
  if (status === "failed") {
    append(state, session, {
      seq: NO_SEQ,
      at: now,
      turnId,
      name: "turn.failed",
      usage: used,
      error: error as TurnError,
      model,
    });
  } else {
    append(
      state,
      session,
      { seq: NO_SEQ, at: now, turnId, name: ENDED[status], usage: used, reply, model },
      undefined,
      replyBefore,
    );
  }
  row.status = status;
  row.endedAt = now;
  row.reply = replyBefore ? reply : undefined;
  row.error = error;
  row.usage = used;
  row.model = model ?? row.model;
  state.deliveries.finish(row.deliverySlot, KEPT[status]);
  state.active.delete(turnId);
  const next = leaveQueue(session, row);
  const isAnnounced = row.announce?.channel !== undefined && status === "completed";
  if (isAnnounced) announce(state, row, now);
  tell(state, session);
  if (isAnnounced) tellAnnouncement(state);
  if (next) passOn(state, next);
};

/** Adds what an attempt used to its turn, its session and the counters. */
export const countUsage = (state: State, row: TurnRow, now: number, used: UsageRow): void => {
  const { input, output, more } = used.usage;
  row.usage = addUsage(row.usage, used.usage);
  row.session.input += input;
  row.session.output += output;
  if (more) row.session.more = addMore(row.session.more, more);
  state.usage.attempt(now, row, used);
};

/** Gives a running turn back to the head of its session's queue. */
export const requeue = (state: State, row: TurnRow, now: number, delayMs: number): void => {
  const { session, turnId } = row;
  if (row.cancelled) {
    finish(state, row, cancelledAt(now));
    return;
  }
  state.running.delete(row);
  row.status = "queued";
  session.turnsQueued++;
  state.queued++;
  row.counts.running--;
  row.counts.queued++;
  append(state, session, { seq: NO_SEQ, at: now, turnId, name: "turn.queued" });
  if (delayMs > 0) state.ready.pushLater(row, state.clock.monotonic() + delayMs);
  else state.ready.push(row);
  tell(state, session);
  tellWork(state);
};
