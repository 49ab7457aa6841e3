import { now } from "../app/clock.ts";
import { zone } from "../app/settings.ts";
import { clockTime, duration, exact, relative } from "../lib/format.ts";

type At = string | number | null | undefined;
function msOf(at: At): number | undefined {
  return at === null || at === undefined ? undefined : new Date(at).getTime();
}

/** A time as its age, with the exact time when it is pointed at. */
export function Ago({ at }: { at: At }) {
  const ms = msOf(at);
  if (ms === undefined) return <span class="faint">never</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={exact(ms, zone.value === "utc")}>
      {relative(ms, now.value)}
    </time>
  );
}

/** The time of day, with the complete time when it is pointed at. */
export function ClockTime({ at }: { at: At }) {
  const ms = msOf(at);
  if (ms === undefined) return <span class="faint">–</span>;
  return (
    <time class="mono" dateTime={new Date(ms).toISOString()} title={exact(ms, zone.value === "utc")}>
      {clockTime(ms, zone.value === "utc")}
    </time>
  );
}

/** The exact time. */
export function Exact({ at }: { at: At }) {
  const ms = msOf(at);
  if (ms === undefined) return <span class="faint">–</span>;
  return <time dateTime={new Date(ms).toISOString()}>{exact(ms, zone.value === "utc")}</time>;
}

/** The time until then; a word once it is over. */
export function Countdown({ to, over = "due" }: { to: At; over?: string }) {
  const ms = msOf(to);
  if (ms === undefined) return <span class="faint">–</span>;
  const left = ms - now.value;
  return (
    <time class="mono" dateTime={new Date(ms).toISOString()} title={exact(ms, zone.value === "utc")}>
      {left <= 0 ? over : `in ${duration(Math.ceil(left / 1_000) * 1_000)}`}
    </time>
  );
}

/** How long something has been going on, still counting. */
export function Running({ since }: { since: At }) {
  const ms = msOf(since);
  return <span class="mono">{ms === undefined ? "–" : duration(Math.max(0, now.value - ms))}</span>;
}
