import { checkBytes, refuse } from "./limits.ts";
import { isCompaction, type OpenTurnRecord, type Rule } from "./records.ts";

export const startCompaction: Rule<"startCompaction"> = (records, order) => {
  const { now, turnId, sessionId, surface, caller, task, isOnly, limits } = order;
  const found = records.sessions.find(sessionId);
  if (!found) throw refuse("session-not-found", `No session has the id ${sessionId}.`);
  const { ordinal, agent, lastSeq } = found.session;
  const queue = records.turns.queue(ordinal);
  const waiting = queue.filter((record) => record.turn.status === "queued" || isCompaction(record)).length;
  if (waiting >= limits.turnsPerSession) {
    const reached = `limits.turnsPerSession is reached: ${waiting} turns and compactions are waiting in the session.`;
    throw refuse("session-busy", `${reached} A new compaction is accepted when the queue is shorter.`);
  }
  if (isOnly && queue.some(isCompaction))
    throw refuse("session-busy", "Another compaction of the session has not ended.");
  checkBytes(records, limits.storeBytes);
  const isFirst = records.turns.firstInQueue(ordinal) === undefined;
  const record: OpenTurnRecord = {
    turn: {
      turnId,
      sessionId,
      agent,
      surface,
      caller,
      status: "queued",
      attempt: 0,
      createdAt: now,
      startedAt: undefined,
      endedAt: undefined,
      model: undefined,
      skillIds: [],
      messageId: "",
      seq: lastSeq,
      reply: undefined,
      error: undefined,
      usage: undefined,
      deliveryId: undefined,
      preview: undefined,
      replyPreview: undefined,
      announcement: undefined,
    },
    ordinal,
    place: records.next("place"),
    replySeq: 0,
    open: {
      waited: false,
      countedModel: "",
      task,
      announce: undefined,
      replyMessageId: "",
      spentMs: 0,
      isCancelled: false,
      readyOrder: isFirst ? records.next("order") : undefined,
      dueAt: undefined,
      lease: undefined,
    },
    bytes: undefined,
  };
  records.turns.put(record);
  records.agents.count(agent, { compactions: 1 });
  if (isFirst) records.notify({ kind: "work", of: "turn" });
};
