import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";

const DAY_MS = 86_400_000;
/** Past this age a token should be replaced. */
export const OLD_DAYS = 90;

/** A webhook token whose configuration says since which day it is in use. `index` is its place in the list; several may have one name. */
export type DatedToken = { index: number; name: string; since: string };
type TokenAge = DatedToken & { days: number };

/** The ages of tokens in whole days. An invalid or future date has no age. */
export function agesOf(tokens: readonly DatedToken[], now: number): TokenAge[] {
  return tokens.flatMap((token) => {
    const days = daysSince(token.since, now);
    return days === undefined ? [] : [{ ...token, days }];
  });
}

export function daysSince(day: string, now: number): number | undefined {
  const days = Math.floor((now - Date.parse(day)) / DAY_MS);
  return days >= 0 ? days : undefined;
}

export function isOld({ days }: TokenAge): boolean {
  return days >= OLD_DAYS;
}

/** A REST key that expires; keys near their end, or just past it, are reported. */
export type EndingKey = {
  /** Undefined for a key of the configuration. */
  keyId: string | undefined;
  name: string;
  expiresAt: number;
  replacedBy: string | undefined;
  /** It is in the configuration, so it cannot be rotated. */
  isConfigured: boolean;
};

/** Keys whose clients need another one: a key that was replaced is meant to end. */
export function needingAnother(keys: readonly EndingKey[]): EndingKey[] {
  return keys.filter(({ replacedBy }) => replacedBy === undefined);
}

/** How many REST keys need another one soon, and how many have ended without. */
export function countEndingKeys(keys: readonly EndingKey[], now: number): { soon: number; ended: number } {
  const needing = needingAnother(keys);
  const ended = needing.filter(({ expiresAt }) => expiresAt <= now).length;
  return { soon: needing.length - ended, ended };
}

const REPLACE_TOKEN = "Put a new token beside it in webhooks.token, change the senders, then take it away.";
const CHANGE_KEY = "Change its expiresAt in the configuration, or put another key in its place there.";
const ROTATE_KEY = "Rotate it on the console's settings page.";

/** Logs each old token and each key that expires soon, now and then once a day. The returned function ends it. */
export function reportOldTokens(parts: {
  tokens: () => readonly DatedToken[];
  keys: () => readonly EndingKey[];
  clock: Clock;
  events: Events;
}) {
  const { tokens, keys, clock, events } = parts;
  let stop = () => {};
  const tell = (): void => {
    for (const { days, ...token } of agesOf(tokens(), clock.now()).filter(isOld))
      events.webhookTokenOld({ ...token, days, detail: REPLACE_TOKEN });
    for (const { name, expiresAt, isConfigured } of needingAnother(keys()))
      events.keyExpiring({
        name,
        expiresAt: new Date(expiresAt).toISOString(),
        detail: isConfigured ? CHANGE_KEY : ROTATE_KEY,
      });
    stop = clock.after(DAY_MS, tell);
  };
  tell();
  return () => stop();
}
