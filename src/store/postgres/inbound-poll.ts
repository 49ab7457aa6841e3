import { noteBeats, type PlannedBeat } from "./beats.ts";
import type { Frame } from "./frame.ts";

/** What a look at the database tells of what comes in: `keys` is another text whenever some were made or revoked. */
export type PolledInbound = {
  beats: readonly PlannedBeat[];
  announcement: boolean;
  gateway: number;
  keys: readonly (number | null)[];
};

/** Hears in a poll of what other gateways did and no notification told. */
export const inboundPoll = (frame: Frame): ((polled: PolledInbound) => void) => {
  let keys: string | undefined;
  return (polled) => {
    const keysNow = JSON.stringify(polled.keys);
    const areKeysNew = keys !== undefined && keys !== keysNow;
    keys = keysNow;
    const dueIn = noteBeats(frame, polled.beats);
    for (const watcher of frame.watchers) {
      if (dueIn !== undefined) watcher.beat(dueIn);
      if (polled.announcement) watcher.announcement();
      if (areKeysNew) watcher.keysChanged?.();
    }
    void frame.gatewayTellings.elsewhere(polled.gateway);
  };
};
