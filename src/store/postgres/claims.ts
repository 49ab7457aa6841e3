import type { Claim, ClaimedTurn, Store } from "#store/store.ts";
import { type Frame, LANE } from "./frame.ts";
import { type ClaimedRow, readClaimed } from "./turn-codec.ts";

type ClaimAnswer = {
  claimed: ClaimedRow[];
  missed: number;
  firstWaited: boolean;
  next: number | null;
  unasked: string[];
};

/** So many turns are claimed in one call. */
const MOST = 100;
/** A call that others were always faster than comes back with what it has. */
const MOST_ROUNDS = 50;

export const claimMethods = (frame: Frame): Pick<Store, "claimTurns" | "extendClaims"> => {
  /** Whether one that somebody waits for goes first, the next time. */
  let firstWaited = true;
  /** Agents that have had turns to claim. */
  const known = new Set<string>();

  return {
    claimTurns: async ({ now, node, leaseMs, free, freeOf, newMessageId }) => {
      const turns: ClaimedTurn[] = [];
      const taken = new Map<string, number>();
      const leftNothing = frame.readyWork.claim();
      for (let rounds = 1; ; rounds++) {
        const most = Math.max(Math.min(free - turns.length, MOST), 0);
        const room: Record<string, number> = {};
        for (const agent of known) room[agent] = Math.max(freeOf(agent) - (taken.get(agent) ?? 0), 0);
        const replies = Array.from({ length: most }, newMessageId);
        const answer: ClaimAnswer = await frame.call("claim_turns", [
          now,
          node,
          leaseMs,
          JSON.stringify(room),
          replies,
          firstWaited,
          LANE,
          frame.time(),
        ]);
        firstWaited = answer.firstWaited;
        for (const row of answer.claimed) {
          const claimed = readClaimed(row);
          turns.push(claimed);
          const { agent } = claimed.turn;
          taken.set(agent, (taken.get(agent) ?? 0) + 1);
          room[agent] = (room[agent] ?? 0) - 1;
        }
        for (const agent of answer.unasked) known.add(agent);
        const isMore = answer.unasked.length > 0 || answer.missed > 0 || answer.claimed.length === most;
        const canTakeMore = turns.length < free && rounds < MOST_ROUNDS;
        if (!isMore && Object.values(room).every((places) => places > 0)) leftNothing();
        if (!isMore || !canTakeMore) return { turns, nextDueInMs: answer.next ?? undefined };
      }
    },

    extendClaims: async (claims, leaseMs): Promise<Claim[]> => {
      if (claims.length === 0) return [];
      const lost = await frame.call<number[]>("extend_claims", [JSON.stringify(claims), leaseMs, frame.time()]);
      return lost.map((n) => claims[n] as Claim);
    },
  };
};
