import { spanOf, textOf } from "#core/agents/agents.ts";
import type { Schedule } from "#generated/rpc-types.ts";
import type { ScheduleStatus } from "./schedules.ts";

/** A schedule as callers see it. */
export function scheduleView({ settings, pausedAt, next, last }: ScheduleStatus): Schedule {
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
    params: skillId === undefined ? null : { ...params },
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
