import { yieldToOthers } from "#kit/yield.ts";
import type { Entry, Store, Turn } from "#store/store.ts";

export type TurnEndEntry = Extract<Entry, { name: "turn.completed" | "turn.failed" | "turn.cancelled" }>;

export function isTurnEnd(entry: Entry): entry is TurnEndEntry {
  return entry.name === "turn.completed" || entry.name === "turn.failed" || entry.name === "turn.cancelled";
}

const PAGE = 200;

/** The journal's entries of a turn, from its beginning to its end; between them lie those of the turns before it. */
export async function readTurnEntries(store: Pick<Store, "readEntries">, turn: Turn): Promise<Entry[]> {
  const found: Entry[] = [];
  // The group of its webhooks is open.
  if (turn.seq === 0) return found;
  for (let after = turn.seq - 1; ; ) {
    const entries = await store.readEntries(turn.sessionId, { after, limit: PAGE });
    found.push(...entries.filter(({ turnId }) => turnId === turn.turnId));
    const last = entries.at(-1);
    if (last === undefined || entries.length < PAGE || found.some(isTurnEnd)) return found;
    after = last.seq;
    await yieldToOthers();
  }
}
