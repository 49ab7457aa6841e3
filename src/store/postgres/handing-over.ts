import type { Clock } from "#kit/clock.ts";

/** Between two beats, too, an agent's events are being handed over. */
const LATELY_MS = 3_000;
const LONGEST_PAUSE_MS = 100;
/** So many calls make what is usual. */
const CALLS_MEANT = 8;

/**
 * How far the events of each agent were handed over, here or by another gateway, and how many have come since. Events are numbered by the
 * database: of what others take in this knows by the numbers of its own.
 */
export const createHandingOver = (clock: Pick<Clock, "monotonic">) => {
  const handed = new Map<string, { through: number; at: number }>();
  let newest = 0;
  return {
    /** This gateway has taken one in. */
    came(ordinal: number): void {
      newest = Math.max(newest, ordinal);
    },
    handed(agent: string, through: number): void {
      newest = Math.max(newest, through);
      const before = handed.get(agent)?.through ?? 0;
      handed.set(agent, { through: Math.max(before, through), at: clock.monotonic() });
    },
    /** How many may wait, of all agents; undefined where none has been handed over lately. */
    waiting(): number | undefined {
      const now = clock.monotonic();
      let behind: number | undefined;
      for (const [agent, { through, at }] of handed) {
        if (now - at > LATELY_MS) handed.delete(agent);
        else behind = Math.max(behind ?? 0, newest - through);
      }
      return behind;
    },
  };
};

export type HandingOver = ReturnType<typeof createHandingOver>;

/** As a notification tells it. */
export const handedText = (agent: string, through: number): string => `${through} ${agent}`;
export const readHanded = (text: string): [agent: string, through: number] => {
  const at = text.indexOf(" ");
  return [text.slice(at + 1), Number(text.slice(0, at))];
};

/** How long what comes is held back after a call: by what calls mostly take, as one that waited for the disk has held it up already. */
export const createHoldBack = (arrears: () => number): ((tookMs: number) => number) => {
  let usualMs = 0;
  return (tookMs) => {
    usualMs += (tookMs - usualMs) / CALLS_MEANT;
    return Math.min(Math.min(tookMs, usualMs) * arrears(), LONGEST_PAUSE_MS);
  };
};
