/**
 * Requests the records that a rule will need next, before the rule reads them. This changes the number of exchanges, but never a result. A rule that does
 * not find a session cannot continue, so without this the sessions of several turns would be loaded one after another.
 */
import type { OpenTurnRecord, Records } from "#store/rules/records.ts";
import type { RuleName } from "#store/rules/rules.ts";
import type { Claim, Lane, Store } from "#store/store.ts";

/** `claiming` is the maximum number of turns that a claim of the pass may take. */
type Requests = Pick<Records, "sessions"> & { claiming: number };

function ofClaim({ sessions }: Requests, { sessionId }: Claim): void {
  sessions.find(sessionId);
}

/** The requests of each rule. Called with the arguments of the rule. */
export const ahead: { readonly [Name in RuleName]?: (records: Requests, ...args: never[]) => void } = {
  endTurn: ofClaim,
  releaseTurn: ofClaim,
  claimTurns: (records, { free }: Parameters<Store["claimTurns"]>[0]) => {
    records.claiming = Math.max(records.claiming, free);
  },
};

type Parts = {
  /** The loaded turns of a lane, as many as a claim may take. */
  loaded(agent: string, lane: Lane): readonly OpenTurnRecord[];
  /** Requests the records that the claim or the end of a turn needs. */
  request(turn: OpenTurnRecord): void;
};

/** The turns of a transaction that writes. */
export function turnsAhead(turns: Records["turns"], { loaded, request }: Parts): Records["turns"] {
  const requested = (found: OpenTurnRecord[]): OpenTurnRecord[] => {
    for (const turn of found) request(turn);
    return found;
  };
  // A claim reads the first turn of a lane again after each turn that it takes.
  const lanes = new Set<string>();
  return {
    ...turns,
    open: (agent) => requested(turns.open(agent)),
    leaseEnded: (time) => requested(turns.leaseEnded(time)),
    dueBy: (time, limit) => {
      const due = turns.dueBy(time, limit);
      requested(due.filter(({ open }) => open.group));
      return due;
    },
    firstReady: (agent, lane) => {
      const first = turns.firstReady(agent, lane);
      const key = `${lane} ${agent}`;
      if (first && !lanes.has(key)) for (const turn of loaded(agent, lane)) request(turn);
      lanes.add(key);
      return first;
    },
  };
}
