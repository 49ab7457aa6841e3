import { addListener, type Listeners, tellListeners } from "#kit/listeners.ts";
import type { Entry, SessionRef, StoreWatcher, Turn } from "#store/store.ts";

type JournalListener = { entries(entries: readonly Entry[]): void; deleted(): void };
export type TurnEndEntry = Extract<Entry, { name: "turn.completed" | "turn.failed" | "turn.cancelled" }>;
/**
 * Called with the entry that ends the turn. `erased`: the turn was deleted with its session. `not-stored`: the turn has ended, but its end
 * could not be stored, because the store is full. The turn will run again later.
 */
type EndListener = (end: TurnEndEntry | "erased" | "not-stored") => void;
/** A turn and its session. */
type TurnPlace = Pick<Turn, "turnId" | "sessionId">;

/** Passes new journal entries to the followers of their session, and the ends of turns to their waiters. */
export function createJournal() {
  const followers: Listeners<JournalListener> = new Map();
  const waiters: Listeners<{ turnId: string; end: EndListener }> = new Map();
  const notifyEnd = ({ turnId, sessionId }: TurnPlace, end: Parameters<EndListener>[0]): void =>
    tellListeners(waiters, sessionId, (one) => one.turnId === turnId && one.end(end));

  const watcher: Pick<StoreWatcher, "entries" | "sessionDeleted"> = {
    entries({ sessionId }, entries) {
      if (waiters.size > 0) {
        for (const entry of entries) if (isTurnEnd(entry)) notifyEnd({ turnId: entry.turnId, sessionId }, entry);
      }
      if (followers.size > 0) tellListeners(followers, sessionId, (listener) => listener.entries(entries));
    },
    sessionDeleted({ sessionId }) {
      tellListeners(followers, sessionId, (listener) => listener.deleted());
      tellListeners(waiters, sessionId, ({ end }) => end("erased"));
    },
  };

  return {
    watcher,
    /** Calls the listener with all new entries of a session. Returns a function that removes the listener. */
    follow: (sessionId: string, listener: JournalListener): (() => void) => addListener(followers, sessionId, listener),
    onTurnEnd: ({ turnId, sessionId }: TurnPlace, end: EndListener): (() => void) =>
      addListener(waiters, sessionId, { turnId, end }),
    turnNotStored: (turn: TurnPlace): void => notifyEnd(turn, "not-stored"),
    /** True if this process has a follower or a waiter for the session. */
    wants: ({ sessionId }: Pick<SessionRef, "sessionId">): boolean =>
      followers.has(sessionId) || waiters.has(sessionId),
  };
}

export type Journal = ReturnType<typeof createJournal>;

export function isTurnEnd(entry: Entry): entry is TurnEndEntry {
  return entry.name === "turn.completed" || entry.name === "turn.failed" || entry.name === "turn.cancelled";
}
