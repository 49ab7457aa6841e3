import type { Entry, StoreWatcher } from "#store/store.ts";
import { addListener } from "./listeners.ts";

export type JournalListener = { entries(entries: readonly Entry[]): void; deleted(): void };

/** Fans the store's entries out to who follows a session, and wakes who waits for the end of a turn. */
export const createJournal = () => {
  const followers = new Map<string, Set<JournalListener>>();
  const ends = new Map<string, Set<(entry: Entry | undefined) => void>>();

  const watcher: Pick<StoreWatcher, "entries" | "sessionDeleted"> = {
    entries(sessionId, entries) {
      if (ends.size > 0) {
        for (const entry of entries) if (isTurnEnd(entry)) for (const end of ends.get(entry.turnId) ?? []) end(entry);
      }
      const listeners = followers.size > 0 ? followers.get(sessionId) : undefined;
      if (listeners) for (const listener of listeners) listener.entries(entries);
    },
    sessionDeleted(sessionId) {
      for (const listener of followers.get(sessionId) ?? []) listener.deleted();
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
      for (const end of ends.get(turnId) ?? []) end(undefined);
    },
  };
};

export type Journal = ReturnType<typeof createJournal>;

export const isTurnEnd = (
  entry: Entry,
): entry is Extract<Entry, { name: "turn.completed" | "turn.failed" | "turn.cancelled" }> =>
  entry.name === "turn.completed" || entry.name === "turn.failed" || entry.name === "turn.cancelled";
