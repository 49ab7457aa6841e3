import { spanOf, textOf } from "#core/agents/agents.ts";
import type { Schedule } from "#generated/rpc-types.ts";
import { isSecretName } from "#kit/secret-fields.ts";
import { HIDDEN } from "#kit/secret-headers.ts";
import type { ScheduleStatus } from "./schedules.ts";

/** A schedule as callers see it. Secrets in `params` are hidden by their name or value, as in the effective configuration. */
export function scheduleView({ settings, pausedAt, next, last, hide }: ScheduleStatus): Schedule {
  const { name, cron, everyMs, timeZone, agent, message, skillId, params, sessionId, model, channel } = settings;
  const { delivery, missed, missedWithinMs, overlap } = settings;
  return {
    name,
    cron: cron ?? null,
    every: everyMs === undefined ? null : spanOf(everyMs),
    timeZone,
    agent,
    message: message ?? null,
    skillId: skillId ?? null,
    params: skillId === undefined ? null : (shown(hide, "", params ?? {}) as Record<string, unknown>),
    sessionId: sessionId ?? null,
    model: model ?? null,
    channel: channel ?? null,
    delivery,
    missed,
    missedWithin: spanOf(missedWithinMs),
    overlap,
    state: pausedAt === undefined ? "active" : "paused",
    pausedAt: textOf(pausedAt),
    next: next.map((time) => new Date(time).toISOString()),
    last: last ? runView(last) : null,
  };
}

/** `name`: that of the nearest field. */
function shown(hide: ScheduleStatus["hide"], name: string, value: unknown): unknown {
  if (typeof value === "string") return isSecretName(name) ? HIDDEN : hide(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shown(hide, name, item));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shown(hide, key, item)]));
}

function runView(run: NonNullable<ScheduleStatus["last"]>): NonNullable<Schedule["last"]> {
  const { outcome, plannedAt, at, turnId, turnStatus, deliveryId, reason, requestedBy } = run;
  return {
    outcome,
    plannedAt: new Date(plannedAt).toISOString(),
    at: new Date(at).toISOString(),
    turnId: turnId ?? null,
    turnStatus: turnStatus ?? null,
    deliveryId,
    reason: reason ?? null,
    requestedBy: requestedBy ?? null,
  };
}
