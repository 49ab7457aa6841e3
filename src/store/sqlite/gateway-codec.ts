import type { GatewayEntry, GatewayNews } from "#store/store.ts";

/**
 * An entry of the gateway's stream as it is kept, without its `seq`: one that tells of a queued event, several of events that were handled
 * together, or the whole of another. The first two come with every event: names of properties would cost more than what they hold.
 */
export type KeptNews =
  | [at: number, eventId: string, agent: string]
  | [at: number, eventIds: readonly string[], agent: string, turnId: string]
  | ({ at: number } & GatewayNews);

/** For how many entries it stands. */
export const lengthOf = (news: KeptNews): number =>
  Array.isArray(news) && typeof news[1] !== "string" ? news[1].length : 1;

export const lengthOfAll = (news: readonly KeptNews[]): number => news.reduce((sum, one) => sum + lengthOf(one), 0);

/** Entries in order, of which the first has this `seq`. */
export const readNews = (first: number, news: readonly KeptNews[]): GatewayEntry[] => {
  const entries: GatewayEntry[] = [];
  let seq = first;
  for (const kept of news) {
    if (!Array.isArray(kept)) {
      entries.push({ seq: seq++, ...kept });
      continue;
    }
    const [at, of, agentName, turnId] = kept;
    if (typeof of === "string") entries.push({ seq: seq++, at, name: "event.queued", eventId: of, agentName });
    else
      for (const eventId of of)
        entries.push({ seq: seq++, at, name: "event.handled", eventId, agentName, turnId: turnId as string });
  }
  return entries;
};
