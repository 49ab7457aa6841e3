import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { QueuedEvent } from "#core/heartbeat/system-events.ts";
import type { HooksHandlers, HooksReplies, WakeRequest } from "#generated/hooks-handlers.ts";

type Reply = HooksReplies["hooks.wake"];

export const wake = (core: Core): Pick<HooksHandlers<HookContext>, "hooks.wake"> => ({
  "hooks.wake": ({ body: { text, metadata, agent, mode } }, ctx) => {
    const queued = core.systemEvents.queue({
      agent,
      text,
      metadata: metadata && JSON.stringify(metadata),
      mode,
      caller: ctx.caller.name,
      hops: ctx.hops,
      idempotency: ctx.idempotency,
      delivery: ctx.delivery(),
    });
    return queued instanceof Promise ? queued.then((late) => replyOf(late, mode, ctx)) : replyOf(queued, mode, ctx);
  },
});

/** A repeat is told of the event that the first request queued. */
const replyOf = ({ event, replayed }: QueuedEvent, mode: WakeRequest["mode"], ctx: HookContext): Reply => ({
  as: "ok",
  body: {
    status: 200,
    message: "event queued",
    eventId: event.eventId,
    deliveryId: event.deliveryId ?? ctx.delivery().deliveryId,
    agent: event.agent,
    mode,
  },
  replayed,
});
