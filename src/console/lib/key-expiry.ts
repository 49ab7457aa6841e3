const DAY = 86_400_000;

/** How long a key may be good for, as the form offers it. An empty value is for ever. */
export const LIFETIMES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "365 days"],
  ["", "Never expires"],
] as const;

/** The moment that a lifetime comes to; null for ever. */
export function expiryOf(days: string, now: number): string | null {
  return days === "" ? null : new Date(now + Number(days) * DAY).toISOString();
}

type KeyState = "active" | "expiring" | "expired" | "replaced";

/** The state of a key beside its name: it ends within a week, it has ended, another has taken its place. */
export function keyState(key: { expires_at?: string | null; replaced_by?: string | null }, now: number): KeyState {
  const left = key.expires_at ? Date.parse(key.expires_at) - now : Number.POSITIVE_INFINITY;
  if (left <= 0) return "expired";
  if (key.replaced_by) return "replaced";
  return left < 7 * DAY ? "expiring" : "active";
}
