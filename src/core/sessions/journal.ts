import { addListener, type Listeners, tellListeners } from "#kit/listeners.ts";
import type { Entry, SessionRef, StoreWatcher, Turn } from "#store/store.ts";

export type TurnEndEntry = Extract<Entry, { name: "turn.completed" | "turn.failed" | "turn.cancelled" }>;
/**
 * Called with the entry that ends the turn. `erased`: the turn was deleted with its session. `not-stored`: the turn has ended, but its end
 * could not be stored, because the store is full. The turn will run again later.
 */
type EndListener = (end: TurnEndEntry | "erased" | "not-stored") => void;
/** A turn and its session. */
type TurnPlace = Pick<Turn, "turnId" | "sessionId">;

/** Passes the ends of turns to their waiters. */
export function createJournal() {
  const waiters: Listeners<{ turnId: string; end: EndListener }> = new Map();
  const notifyEnd = ({ turnId, sessionId }: TurnPlace, end: Parameters<EndListener>[0]): void =>
    tellListeners(waiters, sessionId, (one) => one.turnId === turnId && one.end(end));

  const watcher: Pick<StoreWatcher, "entries" | "sessionDeleted"> = {
    entries({ sessionId }, entries) {
      if (waiters.size === 0) return;
      for (const entry of entries) if (isTurnEnd(entry)) notifyEnd({ turnId: entry.turnId, sessionId }, entry);
    },
    sessionDeleted({ sessionId }) {
      tellListeners(waiters, sessionId, ({ end }) => end("erased"));
    },
  };

  return {
    watcher,
    onTurnEnd: ({ turnId, sessionId }: TurnPlace, end: EndListener): (() => void) =>
      addListener(waiters, sessionId, { turnId, end }),
    turnNotStored: (turn: TurnPlace): void => notifyEnd(turn, "not-stored"),
    /** True if a turn of the session has a waiter. */
    wants: ({ sessionId }: Pick<SessionRef, "sessionId">): boolean => waiters.has(sessionId),
  };
}

export type Journal = ReturnType<typeof createJournal>;

export function isTurnEnd(entry: Entry): entry is TurnEndEntry {
  return entry.name === "turn.completed" || entry.name === "turn.failed" || entry.name === "turn.cancelled";
}
