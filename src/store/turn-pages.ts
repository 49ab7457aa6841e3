import { invalidCursor } from "./cursors.ts";
import type { Turn, TurnQuery } from "./store.ts";

/** The most turns that a page of a list looks at to find those that match. */
export const MOST_LOOKED_AT = 10_000;
/** The turns that are looked at together, before other work runs. */
export const LOOKED_AT_TOGETHER = 500;

export const isOpen = (status: TurnQuery["status"]): boolean => status === "queued" || status === "running";

/** True if the list holds the turn. */
export const matchesTurn = ({ status, agent, sessionId }: TurnQuery, turn: Turn): boolean =>
  (status === undefined || turn.status === status) &&
  (agent === undefined || turn.agent === agent) &&
  (sessionId === undefined || turn.sessionId === sessionId);

const PREFIX = "turn_";

/** A place in a list in the order of ids: the last turn of a page, or the last that was looked at. */
export const encodeTurnCursor = (turnId: string): string => `t${turnId.slice(PREFIX.length)}`;

export const decodeTurnCursor = (cursor: string): string => {
  if (!/^t[0-9A-Za-z]{1,40}$/.test(cursor)) throw invalidCursor();
  return PREFIX + cursor.slice(1);
};
