import type { Events } from "#observe/events.ts";
import type { Clock } from "./clock.ts";

const DAY_MS = 86_400_000;
/** Past this age a token should be replaced. */
const OLD_DAYS = 90;

/** A webhook token whose configuration says since which day it is in use. `index` is its place in the list; several may have one name. */
export type DatedToken = { index: number; name: string; since: string };
export type TokenAge = DatedToken & { days: number };

/** How old tokens are, in whole days. A day that there is not, or that is still to come, is no age. */
export const agesOf = (tokens: readonly DatedToken[], now: number): TokenAge[] =>
  tokens.flatMap((token) => {
    const days = Math.floor((now - Date.parse(token.since)) / DAY_MS);
    return days >= 0 ? [{ ...token, days }] : [];
  });

export const isOld = ({ days }: TokenAge): boolean => days >= OLD_DAYS;

/** Writes a line for each old token at once, then once a day. The returned function ends it. */
export const tellOldTokens = (parts: { tokens: () => readonly DatedToken[]; clock: Clock; events: Events }) => {
  const { tokens, clock, events } = parts;
  let stop = () => {};
  const tell = (): void => {
    for (const { days, ...token } of agesOf(tokens(), clock.now()).filter(isOld))
      events.webhookTokenOld({ ...token, days });
    stop = clock.after(DAY_MS, tell);
  };
  tell();
  return () => stop();
};
