import type { OpenTurns } from "#store/live/open-turns.ts";
import { Ordered } from "#store/live/ordered.ts";
import { type Scale, weighTurn } from "#store/live/weights.ts";
import { isOpen, type OpenTurnRecord, type Records, type TurnRecord } from "#store/rules/records.ts";
import { type Packed, pack, unpack } from "./packed.ts";

/** Turns by their ids. The ones that have ended are packed. */
export const turnRecords = (scale: Scale, open: OpenTurns): Records["turns"] => {
  const byId = new Ordered<string, OpenTurnRecord | Packed>();
  const find = (turnId: string): TurnRecord | undefined => {
    const kept = open.find(turnId) ?? byId.get(turnId);
    return kept === undefined ? undefined : unpack<TurnRecord>(kept);
  };
  const weigh = (turnId: string, after: TurnRecord | undefined): void => {
    const before = find(turnId);
    scale.weigh(before ? weighTurn(before) : 0, after ? weighTurn(after) : 0);
  };
  return {
    find,
    put: (record) => {
      const { turnId } = record.turn;
      weigh(turnId, record);
      byId.set(turnId, isOpen(record) ? record : pack(record));
      if (isOpen(record)) open.put(record);
      else open.delete(turnId);
    },
    delete: ({ turn: { turnId } }) => {
      weigh(turnId, undefined);
      byId.delete(turnId);
      open.delete(turnId);
    },
    open: open.list,
    before: (turnId, limit) => byId.before(turnId, limit).map(unpack<TurnRecord>),
    readyAgents: open.readyAgents,
    firstReady: open.firstReady,
    dueBy: open.dueBy,
    nextDueAt: open.nextDueAt,
    leaseEnded: open.leaseEnded,
  };
};
