import { addListener, type Listeners, tellListeners } from "#kit/listeners.ts";
import type { Entry, SessionRef, StoreWatcher, Turn } from "#store/store.ts";

type JournalListener = { entries(entries: readonly Entry[]): void; deleted(): void };
export type TurnEndEntry = Extract<Entry, { name: "turn.completed" | "turn.failed" | "turn.cancelled" }>;
/**
 * Called with the entry that ends the turn. `erased`: the turn was deleted with its session; `unkept`: it has run to its end here, which the store
 * had no room for, so that it runs again, and nobody knows when.
 */
type EndListener = (end: TurnEndEntry | "erased" | "unkept") => void;
/** A turn, and where it runs. */
type TurnPlace = Pick<Turn, "turnId" | "sessionId">;

/** Fans the store's entries out to a session's followers, and wakes the waiters for the end of a turn. */
export function createJournal() {
  const followers: Listeners<JournalListener> = new Map();
  const waiters: Listeners<{ turnId: string; end: EndListener }> = new Map();
  const tellEnd = ({ turnId, sessionId }: TurnPlace, end: Parameters<EndListener>[0]): void =>
    tellListeners(waiters, sessionId, (one) => one.turnId === turnId && one.end(end));

  const watcher: Pick<StoreWatcher, "entries" | "sessionDeleted"> = {
    entries({ sessionId }, entries) {
      if (waiters.size > 0) {
        for (const entry of entries) if (isTurnEnd(entry)) tellEnd({ turnId: entry.turnId, sessionId }, entry);
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
    /** Entries of a session from now on. */
    follow: (sessionId: string, listener: JournalListener): (() => void) => addListener(followers, sessionId, listener),
    onTurnEnd: ({ turnId, sessionId }: TurnPlace, end: EndListener): (() => void) =>
      addListener(waiters, sessionId, { turnId, end }),
    turnUnkept: (turn: TurnPlace): void => tellEnd(turn, "unkept"),
    /** Somebody follows this session, or waits for one of its turns. */
    wants: ({ sessionId }: Pick<SessionRef, "sessionId">): boolean =>
      followers.has(sessionId) || waiters.has(sessionId),
  };
}

export type Journal = ReturnType<typeof createJournal>;

export function isTurnEnd(entry: Entry): entry is TurnEndEntry {
  return entry.name === "turn.completed" || entry.name === "turn.failed" || entry.name === "turn.cancelled";
}
