/** The events that an endpoint of `notify` can have. */
export const EVENT_TYPES = [
  "turn.completed",
  "turn.failed",
  "turn.cancelled",
  "event.dead",
  "announcement.dead",
  "agent.failing",
  "agent.recovered",
  "key.expiring",
  "budget.warning",
  "budget.exceeded",
  "health.changed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

const ALERTS = EVENT_TYPES.filter((type) => !type.startsWith("turn."));
const GROUPS = [...new Set(EVENT_TYPES.map((type) => `${type.slice(0, type.indexOf("."))}.*`))];
/** The texts that `events` accepts: each event, the events of each group, `alert.*` for all but `turn.*`, and `*`. */
export const EVENT_PATTERNS: readonly string[] = [...EVENT_TYPES, ...GROUPS, "alert.*", "*"];

/** The events that a pattern stands for. */
export function eventsOf(pattern: string): readonly EventType[] {
  if (pattern === "alert.*") return ALERTS;
  const prefix = pattern.endsWith("*") ? pattern.slice(0, -1) : undefined;
  return EVENT_TYPES.filter((type) => (prefix === undefined ? type === pattern : type.startsWith(prefix)));
}
