import type { CompactionPlace, Store } from "#store/store.ts";
import { storeBytes } from "./deliveries.ts";
import { type Frame, LANE } from "./frame.ts";
import { keepText } from "./texts.ts";
import { type Refused, refusalOf } from "./turns.ts";

/** A compaction is claimed once, when it is queued. */
const FENCE = 1;

export const compactionMethods = (frame: Frame): Pick<Store, "queueCompaction" | "endCompaction"> => ({
  queueCompaction: async ({ sessionId, compactionId, node, leaseMs, limits }) => {
    const session = keepText(sessionId);
    const bytes = storeBytes(frame);
    const isFull = bytes >= limits.storeBytes;
    // What else it would be refused for comes first, and takes no place.
    const most = isFull ? 0 : limits.turnsPerSession;
    const args = [compactionId, session, node, leaseMs, most, frame.time()];
    const answer = await frame.call<Refused | Omit<CompactionPlace, "claim">>("queue_compaction", args);
    if ("error" in answer) {
      if (!isFull || answer.error !== "session-busy") throw refusalOf(answer);
      throw refusalOf({ error: "store-full", detail: `The store holds ${bytes} bytes, limits.storeBytes.` });
    }
    if (answer.isFirst) frame.begun.add(compactionId);
    return { claim: { turnId: compactionId, sessionId, node, fence: FENCE }, ...answer };
  },

  endCompaction: async ({ turnId, sessionId, node, fence }, { now, compacted }) => {
    if (fence !== FENCE) return false;
    const done = compacted && {
      ...compacted,
      summary: keepText(compacted.summary),
      size: Buffer.byteLength(compacted.summary) + compacted.except.length * 40 + 300,
    };
    const args = [turnId, keepText(sessionId), node, now, done ? JSON.stringify(done) : null, LANE, frame.time()];
    return (await frame.call<{ ended: boolean }>("end_compaction", args)).ended;
  },
});
