import type { Claim, ClaimedTurn, Store, Turn, TurnEnd, TurnOrder, TurnStart } from "#store/store.ts";
import type { Link } from "./link.ts";
import { type EndAnswer, endedOf, packEnd, packStart, type StartAnswer, startedOf } from "./turn-orders.ts";

type TurnCalls = Pick<
  Store,
  | "startTurn"
  | "findReplay"
  | "claimTurns"
  | "extendClaims"
  | "endTurn"
  | "releaseTurn"
  | "cancelTurn"
  | "failQueuedTurns"
  | "getTurn"
  | "listTurns"
  | "queueCompaction"
  | "endCompaction"
  | "readSummary"
  | "deleteSession"
  | "sweep"
>;

/** The turns' half of the store, as calls of the worker. */
export const turnCalls = (link: Link): TurnCalls => ({
  startTurn: (order) =>
    link.call("startTurn", packStart(order), (answer: StartAnswer | Turn) => settleStart(link, order, answer)),
  findReplay: (key, now) => link.call("findReplay", { key, now }),
  claimTurns: async ({ free: limit, freeOf, newMessageId, ...request }) => {
    const free = new Map<string, number>();
    let most = 0;
    for (const [agent, { queued }] of link.agents) {
      if (queued === 0) continue;
      const count = freeOf(agent);
      free.set(agent, count);
      most += Math.min(count, queued);
    }
    // What is queued meanwhile is told of, and claimed then.
    if (free.size === 0) return { turns: [], nextDueInMs: undefined };
    const messageIds = Array.from({ length: Math.max(Math.min(most, limit), 0) }, newMessageId);
    return await link.call<{ turns: ClaimedTurn[]; nextDueInMs: number | undefined }>("claimTurns", {
      ...{ ...request, limit, free, messageIds },
    });
  },
  extendClaims: (claims, leaseMs) => link.call("extendClaims", { claims, leaseMs }),
  endTurn: (claim, end) =>
    link.call("endTurn", packEnd(claim, end), (answer: EndAnswer | false) => settleEnd(link, claim, end, answer)),
  releaseTurn: (claim, release) => link.call("releaseTurn", { claim, ...release }),
  cancelTurn: (turnId, now) => link.call("cancelTurn", { turnId, now }),
  failQueuedTurns: (agent, error, now) => link.call("failQueuedTurns", { agent, error, now }),
  getTurn: (turnId) => link.call("getTurn", turnId),
  listTurns: (query) => link.call("listTurns", query),
  queueCompaction: (order) => link.call("queueCompaction", order),
  endCompaction: (claim, end) => link.call("endCompaction", { claim, ...end }),
  readSummary: (sessionId) => link.call("readSummary", sessionId),
  deleteSession: (sessionId, now) => link.call("deleteSession", { sessionId, now }),
  sweep: (request) => link.call("sweep", request),
});

const settleStart = (link: Link, order: TurnOrder, answer: StartAnswer | Turn): TurnStart => {
  if (!isPlace(answer)) return { turn: answer, replayed: true, claimed: undefined };
  const { start, session, entries } = startedOf(order, answer);
  link.tell((watcher) => watcher.entries(session, entries));
  return start;
};

const isPlace = (answer: StartAnswer | Turn): answer is StartAnswer => Array.isArray(answer);

const settleEnd = (link: Link, claim: Claim, end: TurnEnd, answer: EndAnswer | false): boolean => {
  if (!answer) return false;
  const { session, entries } = endedOf(claim, end, answer);
  link.tell((watcher) => watcher.entries(session, entries));
  return true;
};
