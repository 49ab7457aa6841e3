import type { EventTools } from "#observe/event-tools.ts";

/** What happens to system events and at heartbeats. */
export const createBeatEvents = ({ log, count, event }: EventTools) => {
  const died = count("events_died", "System events given up.", ["agent"]);
  const beats = count("beats", "Heartbeats, with events and without.", ["agent"]);
  return {
    /** Nothing was stored, and the caller was told: no room. */
    eventRefused: event<{ reason: string }, "reason">("debug", "event.refused", [
      "events_refused",
      "System events refused for want of room.",
      "reason",
    ]),
    eventDead: (dead: { eventId: string; agent: string; attempts: number; turnId: string; reason: string }): void => {
      died.at(dead.agent).inc();
      log("warn", "event.dead", dead);
    },
    /** Nobody is there to handle them: their agent left the configuration, or the gateway stops with a store that forgets. */
    eventsGivenUp: (given: { agent: string; count: number; reason: string }): void => {
      died.at(given.agent).inc(given.count);
      log("warn", "events.given-up", given);
    },
    beatRan: (beat: { agent: string; events: number; turns: number; returned: number; ms: number }): void => {
      beats.at(beat.agent).inc();
      log(beat.events > 0 ? "info" : "debug", "beat.ran", beat);
    },
    /** The next turn of a beat could not be started, and is tried again. */
    beatDelayed: event<{ agent: string; reason: string; delayMs: number }, "reason">("warn", "beat.delayed", [
      "beat_delays",
      "Times that events could not be handed over and had to wait.",
      "reason",
    ]),
  };
};
