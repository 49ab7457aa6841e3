import type { GatewayEntry, GatewayNews } from "#store/store.ts";

/**
 * An entry of the gateway's stream as it is kept, without its `seq`: one that tells of a queued event, one of a handled event, or the
 * whole of another. The first two come with every event: names of properties would cost more than what they hold.
 */
export type KeptNews =
  | [at: number, eventId: string, agent: string]
  | [at: number, eventId: string, agent: string, turnId: string]
  | ({ at: number } & GatewayNews);

/** Entries in order, of which the first has this `seq`. */
export const readNews = (first: number, news: readonly KeptNews[]): GatewayEntry[] =>
  news.map((kept, n): GatewayEntry => {
    const seq = first + n;
    if (!Array.isArray(kept)) return { seq, ...kept };
    const [at, eventId, agentName, turnId] = kept;
    if (turnId === undefined) return { seq, at, name: "event.queued", eventId, agentName };
    return { seq, at, name: "event.handled", eventId, agentName, turnId };
  });
