import type { Entry, StoreWatcher } from "#store/store.ts";
import { addListener, type Listeners, tellListeners } from "./listeners.ts";
import { IdTable } from "./tables.ts";

export type JournalListener = { entries(entries: readonly Entry[]): void; deleted(): void };

/** Fans the store's entries out to who follows a session, and wakes who waits for the end of a turn. */
export const createJournal = () => {
  const followers: Listeners<JournalListener> = new Map();
  const ends: Listeners<(entry: Entry | undefined) => void> = new IdTable();

  const watcher: Pick<StoreWatcher, "entries" | "sessionDeleted"> = {
    entries({ sessionId }, entries) {
      if (ends.size > 0) {
        for (const entry of entries) if (isTurnEnd(entry)) tellListeners(ends, entry.turnId, (end) => end(entry));
      }
      if (followers.size > 0) tellListeners(followers, sessionId, (listener) => listener.entries(entries));
    },
    sessionDeleted({ sessionId }) {
      tellListeners(followers, sessionId, (listener) => listener.deleted());
    },
  };

  return {
    watcher,
    /** Entries of a session from now on. */
    follow: (sessionId: string, listener: JournalListener): (() => void) => addListener(followers, sessionId, listener),
    /** Calls `end` with the entry that ends the turn; with none when the turn was erased. */
    onTurnEnd: (turnId: string, end: (entry: Entry | undefined) => void): (() => void) =>
      addListener(ends, turnId, end),
    turnErased(turnId: string): void {
      tellListeners(ends, turnId, (end) => end(undefined));
    },
  };
};

export type Journal = ReturnType<typeof createJournal>;

export const isTurnEnd = (
  entry: Entry,
): entry is Extract<Entry, { name: "turn.completed" | "turn.failed" | "turn.cancelled" }> =>
  entry.name === "turn.completed" || entry.name === "turn.failed" || entry.name === "turn.cancelled";
