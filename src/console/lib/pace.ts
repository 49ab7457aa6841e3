const HOUR_MS = 3_600_000;
const PARTS = 60;

/** `counts` are those of 60 equal parts of the span, oldest first. */
type Pace = { spanMs: number; perMinute: number; counts: readonly number[] };

/**
 * How often something happened in the last hour. Where only the newest times are known (`hasMore`), the span begins with the oldest of
 * them, so that no part of it lacks any.
 */
export function paceOf(times: readonly number[], now: number, hasMore: boolean): Pace {
  const oldest = Math.min(now, ...times);
  const spanMs = hasMore ? Math.min(HOUR_MS, Math.max(1, now - oldest)) : HOUR_MS;
  const counts = new Array<number>(PARTS).fill(0);
  for (const at of times) {
    const part = PARTS - 1 - Math.max(0, Math.floor(((now - at) / spanMs) * PARTS));
    if (part >= 0) counts[part] = (counts[part] ?? 0) + 1;
    else if (now - at === spanMs) counts[0] = (counts[0] ?? 0) + 1;
  }
  const total = counts.reduce((sum, one) => sum + one, 0);
  return { spanMs, counts, perMinute: total / (spanMs / 60_000) };
}
