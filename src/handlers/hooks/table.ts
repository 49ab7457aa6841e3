import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { StartedWebhook } from "#core/webhook-turns.ts";
import type { AgentHookReply, HooksHandlers, HooksReplies, WakeReply } from "#generated/hooks-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import type { SystemEvent } from "#store/store.ts";

/** The body of every webhook. One that is missing does not compile. */
export function hooksHandlers(core: Core): HooksHandlers<HookContext> {
  const { systemEvents, webhookTurns, checkNames } = core;
  return {
    "hooks.wake": async ({ body: { text, metadata, agent, mode } }, ctx) => {
      const { event, replayed } = await systemEvents.queue({
        agent,
        text,
        metadata: metadata && JSON.stringify(metadata),
        mode,
        caller: ctx.caller.name,
        hops: ctx.hops,
        idempotency: ctx.idempotency,
        delivery: ctx.delivery(),
      });
      return { as: "ok", body: queuedOf(event, mode, ctx), replayed };
    },
    "hooks.agent": async ({ body: { message: text, ...request } }, ctx) => {
      const { session, model, channel } = request;
      checkNames("invalid-request", { session, model, channel });
      const started = await webhookTurns.start({ text, ...request }, ctx);
      return { as: "ok", body: bodyOf(started, ctx), replayed: started.replayed };
    },
    "hooks.mapped": async ({ body }, ctx) => {
      const started = await webhookTurns.startMapped(body, ctx);
      if (!started) throw new GatewayError("mapping-not-found", "No mapping matched the payload.");
      return mappedReply(started, ctx);
    },
    "hooks.mappedByName": async ({ path, body }, ctx) => {
      const started = await webhookTurns.startMapped(body, ctx, path.name);
      if (started) return mappedReply(started, ctx);
      const { deliveryId } = ctx.delivery();
      return { as: "ok", body: { status: 200, message: "no mapping matched", deliveryId }, replayed: false };
    },
  };
}

function queuedOf({ eventId, agent, deliveryId }: SystemEvent, mode: WakeReply["mode"], ctx: HookContext): WakeReply {
  return {
    status: 200,
    message: "event queued",
    eventId,
    deliveryId: deliveryId ?? ctx.delivery().deliveryId,
    agent,
    mode,
  };
}

function mappedReply(started: StartedWebhook & { mapping: string }, ctx: HookContext): HooksReplies["hooks.mapped"] {
  const { mapping, replayed, joinedBy } = started;
  const body = { ...bodyOf(started, ctx), mapping };
  // A request that joined an open turn is found by its own delivery, also if it is repeated.
  const joined = { message: "joined an open turn", coalesced: true } as const;
  return { as: "ok", body: joinedBy === undefined ? body : { ...body, ...joined, deliveryId: joinedBy }, replayed };
}

function bodyOf({ turn, model, channel, delivery, isUnaddressed }: StartedWebhook, ctx: HookContext): AgentHookReply {
  return {
    status: 200,
    message: "turn started",
    sessionId: turn.sessionId,
    turnId: turn.turnId,
    // A repeated request gets the delivery that started the turn.
    deliveryId: turn.deliveryId ?? ctx.delivery().deliveryId,
    agent: turn.agent,
    model: model ?? null,
    channel: channel ?? null,
    delivery,
    ...(isUnaddressed && { warning: unaddressed(channel) }),
  };
}

function unaddressed(channel: string | undefined): string {
  const reason = channel === undefined ? "the request names no `channel`" : `\`${channel}\` is not among \`channels\``;
  return `No channel takes the announcement: ${reason}, and gateway.announceTo is not set. Only WebSocket subscribers will receive the reply.`;
}
