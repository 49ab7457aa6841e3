import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { HooksHandlers } from "#generated/hooks-handlers.ts";

export const wake = (core: Core): Pick<HooksHandlers<HookContext>, "hooks.wake"> => ({
  "hooks.wake": async ({ body: { text, metadata, agent, mode } }, ctx) => {
    const { event, replayed } = await core.systemEvents.queue({
      agent,
      text,
      metadata: metadata && JSON.stringify(metadata),
      mode,
      caller: ctx.caller.name,
      hops: ctx.hops,
      idempotency: ctx.idempotency,
      delivery: ctx.delivery(),
    });
    // A repeat is told of the event that the first request queued.
    const deliveryId = event.deliveryId ?? ctx.delivery().deliveryId;
    const { eventId, agent: name } = event;
    return {
      as: "ok",
      body: { status: 200, message: "event queued", eventId, deliveryId, agent: name, mode },
      replayed,
    };
  },
});
