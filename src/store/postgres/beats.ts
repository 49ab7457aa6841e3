import type { Beat, BeatClaim, Store } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import { handedText } from "./handing-over.ts";

type BeatMethods = Pick<Store, "planBeat" | "readBeat" | "claimBeats" | "extendBeat" | "endBeat" | "setPaused">;

/** A beat as the database tells of it. Times from then on, in milliseconds. `noted`: when it is due, or while one runs, when that was. */
export type PlannedBeat = {
  agent: string;
  dueIn: number | null;
  notedIn: number | null;
  noted: number | null;
  running: boolean;
  /** Since when its agent is paused. */
  pausedAt: number | null;
  /** Grows with each change. */
  version: number;
};

export const beatMethods = (frame: Frame): BeatMethods => ({
  planBeat: async (agent, { delayMs, soonest }) => {
    const args = [agent, delayMs ?? null, soonest, frame.time()];
    const answer = await frame.call<{ planned: PlannedBeat } | null>("plan_beat", args);
    if (answer) noteBeats(frame, [answer.planned]);
  },

  readBeat: async (agent) => {
    const [row] = await frame.query<{ beat: PlannedBeat }>(
      "select beat_json(beat, engine_time($2)) as beat from beats as beat where agent = $1",
      [agent, frame.time()],
    );
    return row ? beatOf(frame, row.beat) : { agent, nextAt: undefined, running: false };
  },

  claimBeats: async ({ node, leaseMs, agents }) => {
    const { claims, through, next } = await frame.call<{
      claims: Pick<BeatClaim, "agent" | "fence">[];
      through: number;
      next: number | null;
    }>("claim_beats", [agents, node, leaseMs, frame.time()]);
    for (const { agent } of claims) {
      const known = frame.beats.get(agent);
      if (known) known.running = true;
    }
    return {
      beats: claims.map(({ agent, fence }) => ({ agent, node, fence, through })),
      nextDueInMs: next ?? undefined,
    };
  },

  extendBeat: ({ agent, node, fence }, leaseMs) =>
    frame.call<boolean>("extend_beat", [agent, node, fence, leaseMs, frame.time()]),

  endBeat: async ({ agent, node, fence }, { now, delayMs, ran, streamKeep }) => {
    const told = ran ? JSON.stringify(ran) : null;
    const args = [agent, node, fence, delayMs ?? null, told, frame.clock.now(), now, streamKeep, frame.time()];
    const answer = await frame.call<{ planned: PlannedBeat } | null>("end_beat", args);
    if (!answer) return false;
    noteBeats(frame, [answer.planned]);
    return beatOf(frame, answer.planned);
  },

  setPaused: async (agent, { paused, now, streamKeep }) => {
    const args = [agent, paused, now, streamKeep, frame.time()];
    const { planned, isChanged } = await frame.call<{ planned: PlannedBeat; isChanged: boolean }>("set_paused", args);
    noteBeats(frame, [planned]);
    if (isChanged) frame.notify("paused", [pausedText(planned)]);
    return { pausedAt: planned.pausedAt ?? undefined, isChanged };
  },
});

/** By the wall clock as it is now: what is due moves with nobody's clock. */
const wallTime = (frame: Frame, dueIn: number | null): number | undefined =>
  dueIn === null ? undefined : Math.round(frame.clock.now() + dueIn);

const beatOf = (frame: Frame, { agent, dueIn, running }: PlannedBeat): Beat => {
  return { agent, nextAt: wallTime(frame, dueIn), running };
};

/** When each agent's next beat is due, by the wall clock as it was when that was heard of; `version` is that of the beat then. */
export type NotedBeats = Map<
  string,
  Pick<PlannedBeat, "version" | "noted" | "running" | "pausedAt"> & { at: number | undefined }
>;

/**
 * Keeps what `agentCounts` tells. Answers how long until the first of those beats that wait for another time than was known: whoever
 * planned one, or held the one before, may be gone by then.
 */
export const noteBeats = (frame: Frame, beats: readonly PlannedBeat[] | null | undefined): number | undefined => {
  let firstIn: number | undefined;
  for (const { agent, noted, notedIn, dueIn, running, pausedAt, version } of beats ?? []) {
    const known = frame.beats.get(agent);
    // A poll may have looked before a call changed it of which this node has heard already.
    if (known && version <= known.version) continue;
    const isMoved = known?.noted !== noted;
    const isFree = known?.running === true || known?.pausedAt !== null;
    frame.beats.set(agent, { version, noted, at: isMoved ? wallTime(frame, notedIn) : known?.at, running, pausedAt });
    if (running || pausedAt !== null || dueIn === null || !(isMoved || isFree)) continue;
    firstIn = Math.min(firstIn ?? dueIn, dueIn);
  }
  return firstIn;
};

/** As a notification tells it, so that other gateways need not wait for their next look at the database. */
const pausedText = ({ agent, version, pausedAt }: PlannedBeat): string => JSON.stringify([agent, version, pausedAt]);

/** Another gateway has paused the agent, or resumed it. Where something else of its beat is not known yet, the next look tells all. */
export const hearPaused = (frame: Frame, text: string): void => {
  const [agent, version, pausedAt] = JSON.parse(text) as [string, number, number | null];
  const known = frame.beats.get(agent);
  if (known?.version === version - 1) frame.beats.set(agent, { ...known, version, pausedAt });
};

/** All of the agent up to there were handed over: here, so that the others are told. */
export const handOver = (frame: Frame, agent: string, through: number): void => {
  frame.handingOver.handed(agent, through);
  frame.notify("handed", [handedText(agent, through)]);
};

/** So many events are handed over in a fraction of a second: by one gateway that is alone, and for each of several. */
const FEW = 500;
const FEW_EACH = 330;
/** Of another gateway's beat this one knows by its looks once a second, and between two beats it is about to go on. */
const LATELY_MS = 3_000;

/**
 * How far events that are being handed over are behind those that come: 0 where nothing is to be made up for, little where there is a
 * bit, as between two beats, and so much where there is more that what comes is held back for as long as it takes.
 */
export const arrearsOf = (frame: Frame): number => {
  const { gateways, handingOver, counts, clock } = frame;
  // What others add to the counters, and take off, is known a second later: by those one gateway would wait for all.
  const waiting = gateways > 1 ? handingOver.waiting() : undefined;
  const few = gateways > 1 ? FEW_EACH * gateways : FEW;
  const behind = (waiting ?? counts.of("events")) / few - 1;
  if (behind <= 0) return 0;
  if (waiting !== undefined) return behind * behind;
  for (const { running, pausedAt } of frame.beats.values())
    if (running && pausedAt === null) frame.beatingAt = clock.monotonic();
  return clock.monotonic() - frame.beatingAt < LATELY_MS ? behind * behind : 0;
};
