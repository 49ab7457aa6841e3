import { EVENT_BYTES, SESSION_BYTES, TURN_BYTES } from "#store/rules/shares.ts";
import type { Share, Store } from "#store/store.ts";

/** The shares as `readShares` returns them, in the order of their callers. */
export async function sharesOf(store: Store): Promise<Share[]> {
  return sorted(await store.readShares());
}

/** The same, counted from the turns, messages and events of a store. */
export async function recountShares(store: Store): Promise<Share[]> {
  const shares = new Map<string, Share>();
  const shareOf = ({ surface, caller }: Pick<Share, "surface" | "caller">): Share => {
    const share = shares.get(`${surface} ${caller}`) ?? { surface, caller, bytes: 0, turns: 0, events: 0 };
    shares.set(`${surface} ${caller}`, share);
    return share;
  };
  for (const { turnId, sessionId, surface, caller, seq, status } of (await store.listTurns({ limit: 1_000 })).items) {
    if (surface === "heartbeat") continue;
    const share = shareOf({ surface, caller });
    share.bytes += TURN_BYTES + (seq === 2 ? SESSION_BYTES : 0);
    share.turns += status === "queued" ? 1 : 0;
    const entries = await store.readEntries(sessionId, { after: 0, limit: 10_000 });
    for (const entry of entries.filter((one) => one.turnId === turnId)) {
      if (entry.name === "message.created") share.bytes += bytesOf(entry.text) + bytesOf(entry.context);
      if (entry.name === "message.completed") share.bytes += bytesOf(entry.text);
    }
  }
  for (const { caller, text, metadata, status } of (await store.listEvents({ limit: 1_000 })).items) {
    const share = shareOf({ surface: "hooks", caller });
    share.bytes += EVENT_BYTES + bytesOf(text) + bytesOf(metadata);
    share.events += status === "queued" ? 1 : 0;
  }
  return sorted([...shares.values()]);
}

function bytesOf(text: string | undefined): number {
  return Buffer.byteLength(text ?? "");
}

function sorted(shares: readonly Share[]): Share[] {
  return shares.toSorted((a, b) => (`${a.surface} ${a.caller}` < `${b.surface} ${b.caller}` ? -1 : 1));
}
