import type { BeatClaim } from "#store/store.ts";
import { isPaused } from "./agents.ts";
import { appendNews } from "./gateway.ts";
import { holds, leaseFor } from "./leases.ts";
import type { BeatRecord, Records, Rule } from "./records.ts";

export const planBeat: Rule<"planBeat"> = (records, agent, { delayMs, soonest }) => {
  const record = findBeat(records, agent);
  if (record.isAsked) return;
  const dueAt = delayMs === undefined ? undefined : records.moment.time + delayMs;
  const isSooner = dueAt !== undefined && (record.dueAt === undefined || dueAt < record.dueAt);
  if (soonest && !isSooner) return;
  putBeat(records, { ...record, dueAt });
  if (isSooner && !record.lease) records.notify({ kind: "work", of: "beat" });
};

export const readBeat: Rule<"readBeat"> = (records, agent) => {
  const record = findBeat(records, agent);
  return { agent, nextAt: wallTimeOf(records, record.dueAt), running: record.lease !== undefined };
};

export const claimBeats: Rule<"claimBeats"> = (records, { node, leaseMs, agents }) => {
  const { time } = records.moment;
  const beats: BeatClaim[] = [];
  let nextDueAt = Infinity;
  for (const agent of agents) {
    const record = records.beats.find(agent);
    if (!record || isPaused(records, agent) || (record.lease && record.lease.endsAt > time)) continue;
    const { dueAt = Infinity } = record;
    if (record.lease || dueAt <= time) {
      const fence = record.fence + 1;
      const lease = leaseFor(records, node, leaseMs);
      records.beats.put({ ...record, dueAt: undefined, isAsked: false, fence, lease });
      beats.push({ agent, node, fence, through: records.last("event") });
    } else {
      nextDueAt = Math.min(nextDueAt, dueAt);
    }
  }
  return { beats, nextDueInMs: nextDueAt === Infinity ? undefined : nextDueAt - time };
};

export const extendBeat: Rule<"extendBeat"> = (records, claim, leaseMs) => {
  const record = beatOfClaim(records, claim);
  if (record) records.beats.put({ ...record, lease: leaseFor(records, claim.node, leaseMs) });
  return record !== undefined;
};

export const endBeat: Rule<"endBeat"> = (records, claim, { now, delayMs, ran, streamKeep }) => {
  const record = beatOfClaim(records, claim);
  if (!record) return false;
  const { time } = records.moment;
  const planned = delayMs === undefined ? undefined : time + delayMs;
  putBeat(records, { ...record, lease: undefined, dueAt: record.isAsked ? time : planned });
  const beat = readBeat(records, record.agent);
  if (ran) {
    const nextAt = beat.nextAt ?? null;
    appendNews(records, [{ name: "heartbeat.ran", agentName: record.agent, ...ran, nextAt }], now, streamKeep);
  }
  return beat;
};

/** An event came that wants the agent's next beat at once. */
export function askForBeat(records: Records, agent: string): void {
  const record = findBeat(records, agent);
  if (record.isAsked) return;
  if (record.lease) {
    putBeat(records, { ...record, isAsked: true });
    return;
  }
  putBeat(records, { ...record, isAsked: true, dueAt: records.moment.time });
  records.notify({ kind: "work", of: "beat" });
}

/** Beats whose node has let their lease end are due again. */
export function freeLostBeats(records: Records): void {
  const { time } = records.moment;
  const lost = records.beats.leaseEnded(time);
  for (const record of lost) putBeat(records, { ...record, lease: undefined, dueAt: time });
  if (lost.length > 0) records.notify({ kind: "work", of: "beat" });
}

function findBeat(records: Records, agent: string): BeatRecord {
  return (
    records.beats.find(agent) ?? {
      agent,
      dueAt: undefined,
      nextAt: undefined,
      isAsked: false,
      fence: 0,
      lease: undefined,
    }
  );
}

function putBeat(records: Records, record: BeatRecord): void {
  records.beats.put({ ...record, nextAt: record.lease ? record.nextAt : wallTimeOf(records, record.dueAt) });
}

/** The due time by the wall clock as it is now. A jump of that clock does not move the beat itself. */
function wallTimeOf({ moment: { now, time } }: Records, dueAt: number | undefined): number | undefined {
  return dueAt === undefined ? undefined : Math.round(now + dueAt - time);
}

function beatOfClaim(records: Records, claim: BeatClaim): BeatRecord | undefined {
  const record = records.beats.find(claim.agent);
  return record && holds(claim, record.lease, record.fence) ? record : undefined;
}
