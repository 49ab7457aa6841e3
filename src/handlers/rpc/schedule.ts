import type { CallContext, Caller } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { scheduleView } from "#core/schedules/schedule-view.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { StartedRun } from "#generated/rpc-types.ts";
import { reaches } from "#kit/reach.ts";

type ScheduleMethods = "schedule.list" | "schedule.run" | "schedule.pause" | "schedule.resume";

export function schedule({ schedules }: Core): Pick<RpcHandlers<CallContext>, ScheduleMethods> {
  return {
    "schedule.list": async (_, { caller }) => {
      const shown = (await schedules.list()).filter(({ settings }) => reaches(caller, settings.agent));
      return { schedules: shown.map(scheduleView) };
    },
    "schedule.run": async ({ scheduleName }, ctx) => {
      const request = { ...by(ctx.caller), idempotency: ctx.idempotency, delivery: ctx.delivery() };
      const { turn, replayed } = await schedules.run(scheduleName, request);
      const { turnId, sessionId, deliveryId = "", agent: agentName } = turn;
      const started: StartedRun = { scheduleName, turnId, sessionId, deliveryId, agentName };
      return replayed ? { ...started, replayed } : started;
    },
    "schedule.pause": async ({ scheduleName }, { caller }) =>
      scheduleView(await schedules.setPaused(scheduleName, true, by(caller))),
    "schedule.resume": async ({ scheduleName }, { caller }) =>
      scheduleView(await schedules.setPaused(scheduleName, false, by(caller))),
  };
}

function by({ name: caller, agents }: Caller) {
  return { caller, agents };
}
