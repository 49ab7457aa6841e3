import { HOPS_HEADER, hopsOf, MAX_HOPS } from "#kit/hops.ts";
import type { SystemEvent } from "#store/store.ts";

/** What an agent reads of the events of one turn: each with its id, its time, who sent it, its text as it came and what came beside that. */
export const textOfEvents = (events: readonly SystemEvent[]): string => {
  let text = events.length === 1 ? "1 system event" : `${events.length} system events, the oldest first`;
  let n = 0;
  for (const event of events) {
    text += `\n\n${++n}. ${headOf(event)}\n${event.text}`;
    if (event.metadata !== undefined) text += `\nmetadata: ${event.metadata}`;
  }
  return text;
};

/** The most that any of them has come through. What says more than an event that was taken can have says too much. */
export const hopsOfEvents = (events: readonly SystemEvent[]): number => {
  let most = 0;
  for (const { metadata } of events) {
    if (!metadata?.includes(HOPS_HEADER)) continue;
    const { [HOPS_HEADER]: said } = JSON.parse(metadata) as Record<string, unknown>;
    if (said !== undefined) most = Math.max(most, hopsOf(String(said)));
  }
  return Math.min(most, MAX_HOPS - 1);
};

const headOf = ({ eventId, createdAt, caller, attempts }: SystemEvent): string => {
  const tried = attempts === 0 ? "" : `, tried ${attempts} ${attempts === 1 ? "time" : "times"} before`;
  return `${eventId}, ${new Date(createdAt).toISOString()}, from ${caller}${tried}`;
};
