import type { ClaimedTurn, Compacted, Lane } from "#store/store.ts";
import { LEASE_MS, type World, type WorldOptions } from "./world.ts";

type CompactionOptions = {
  session?: string;
  node?: string | undefined;
  limits?: WorldOptions["limits"];
  isOnly?: boolean;
  leaseMs?: number;
};

/** Queues a compaction. Returns its id. */
export async function startCompaction(
  world: World,
  { session = "chat:a", limits, isOnly }: CompactionOptions = {},
): Promise<string> {
  const now = world.clock.now();
  const turnId = world.newId("cmp");
  await world.store.startCompaction({
    now,
    turnId,
    sessionId: session,
    surface: "rpc",
    caller: "ops",
    task: { kind: "compact", keep: 0, keepTokens: undefined },
    isOnly,
    limits: world.order({ limits: limits ?? {} }).limits,
  });
  return turnId;
}

/** A claimed compaction that is the first in its queue. */
export async function claimCompaction(world: World, options: CompactionOptions = {}): Promise<ClaimedTurn> {
  const turnId = await startCompaction(world, options);
  const { node = "node_a", leaseMs = LEASE_MS } = options;
  const freeOf = (_: string, lane: Lane) => (lane === "compact" ? 1 : 0);
  const request = { now: world.clock.now(), node, leaseMs, free: 1, freeOf, newMessageId: () => "" };
  const [claimed] = (await world.store.claimTurns(request)).turns;
  if (claimed?.turn.turnId !== turnId) throw new Error("something is before the compaction");
  return claimed;
}

/** Ends a compaction with its outcome; without one there was nothing to compact. */
export function endCompaction(
  world: World,
  claimed: Pick<ClaimedTurn, "claim">,
  compacted?: Compacted,
): Promise<boolean> {
  const none = { messages: 0, tokens: 0 };
  const { before, after } = compacted ?? { before: none, after: none };
  return world.end(claimed, {
    reply: "",
    compaction: { before, after, compacted, reason: compacted ? undefined : "none" },
  });
}
