import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { scheduleView } from "#core/schedules/schedule-view.ts";
import type { ScheduleStatus } from "#core/schedules/schedules.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { hashOf } from "#kit/secrets.ts";
import { snakeCased } from "./present.ts";

type Bodies = Pick<
  RestHandlers<CallContext>,
  "schedules.list" | "schedules.run" | "schedules.pause" | "schedules.resume"
>;

export function schedules({ schedules }: Core): Bodies {
  return {
    "schedules.list": async () => ({ schedules: (await schedules.list()).map(scheduleOf), next_cursor: null }),
    "schedules.run": async ({ path: { schedule_name: schedule } }, ctx) => {
      // The request has no body: another schedule is another request.
      const idempotency = ctx.idempotency && { ...ctx.idempotency, hash: hashOf(schedule).toString("base64url") };
      const request = { caller: ctx.caller.name, idempotency, delivery: ctx.delivery() };
      const { turn, replayed } = await schedules.run(schedule, request);
      const { turnId: turn_id, sessionId: session_id, deliveryId: delivery_id = "", agent } = turn;
      return { as: "ok", body: { schedule, turn_id, session_id, delivery_id, agent }, replayed };
    },
    "schedules.pause": async ({ path }, { caller }) =>
      scheduleOf(await schedules.setPaused(path.schedule_name, true, { caller: caller.name })),
    "schedules.resume": async ({ path }, { caller }) =>
      scheduleOf(await schedules.setPaused(path.schedule_name, false, { caller: caller.name })),
  };
}

function scheduleOf(status: ScheduleStatus): RestReplies["schedules.pause"] {
  const { last, ...schedule } = scheduleView(status);
  return { ...snakeCased(schedule), last: last && snakeCased(last) };
}
