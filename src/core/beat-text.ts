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

const headOf = ({ eventId, createdAt, caller, attempts }: SystemEvent): string => {
  const tried = attempts === 0 ? "" : `, tried ${attempts} ${attempts === 1 ? "time" : "times"} before`;
  return `${eventId}, ${new Date(createdAt).toISOString()}, from ${caller}${tried}`;
};
