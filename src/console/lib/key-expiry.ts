const DAY = 86_400_000;

/** How long a key may be good for, as the form offers it. An empty value is for ever. */
export const LIFETIMES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "365 days"],
  ["", "Never expires"],
] as const;

/** The end of a lifetime; null for an unlimited one. */
export function expiryOf(days: string, now: number): string | null {
  return days === "" ? null : new Date(now + Number(days) * DAY).toISOString();
}

type KeyState = "active" | "expiring" | "expired" | "replaced";

/** The state of a key, shown next to its name: it expires within a week, has expired, or was replaced. */
export function keyState(key: { expires_at?: string | null; replaced_by?: string | null }, now: number): KeyState {
  const left = key.expires_at ? Date.parse(key.expires_at) - now : Number.POSITIVE_INFINITY;
  if (left <= 0) return "expired";
  if (key.replaced_by) return "replaced";
  return left < 7 * DAY ? "expiring" : "active";
}
