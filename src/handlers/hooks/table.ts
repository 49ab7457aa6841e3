import { announceOf } from "#core/announcements.ts";
import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { Choice } from "#core/mappings.ts";
import type { AgentHookReply, HooksHandlers, HooksReplies } from "#generated/hooks-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { newBareId } from "#kit/ids.ts";

/** The body of every webhook. One that is missing does not compile. */
export function hooksHandlers(core: Core): HooksHandlers<HookContext> {
  return {
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
    "hooks.agent": async ({ body: { message: text, ...request } }, ctx) => {
      const { session, model, channel } = request;
      core.checkNames("invalid-request", { session, model, channel });
      return { as: "ok", ...(await startHook(core, { text, ...request }, ctx)) };
    },
    "hooks.mapped": async ({ body }, ctx) => {
      const { chosen } = choose(core, body, ctx);
      if (chosen) return startMapped(core, chosen, ctx);
      ctx.answer = "unmatched";
      throw new GatewayError("mapping-not-found", "No mapping matched the payload.");
    },
    "hooks.mappedByName": async ({ path, body }, ctx) => {
      const { chosen } = choose(core, body, ctx, path.name);
      if (chosen) return startMapped(core, chosen, ctx);
      ctx.answer = "unmatched";
      const { deliveryId } = ctx.delivery();
      return { as: "ok", body: { status: 200, message: "no mapping matched", deliveryId }, replayed: false };
    },
  };
}

/** The mapping that takes the request, and on the request's timeline why the others did not. */
function choose(core: Core, body: unknown, ctx: HookContext, name?: string): Choice {
  const { mappings } = core.settings();
  const choice = mappings.choose({ headers: ctx.headers, body }, name);
  ctx.note("mapping.tried", mappings.noteOf(choice));
  return choice;
}

async function startMapped(
  core: Core,
  { mapping, message }: NonNullable<Choice["chosen"]>,
  ctx: HookContext,
): Promise<HooksReplies["hooks.mapped"]> {
  const { name, agent, session, model, channel, delivery } = mapping;
  ctx.mapping = name;
  ctx.note("message.rendered", JSON.stringify({ mapping: name, characters: message.length }));
  const started = await startHook(core, { agent, session, model, channel, delivery, text: message }, ctx);
  return { as: "ok", body: { ...started.body, mapping: name }, replayed: started.replayed };
}

/** The turn that a webhook asks for. */
type HookTurn = {
  /** The default one without it. */
  agent?: string | undefined;
  /** A `webhook:` session; a fresh one without it. */
  session?: string | undefined;
  model?: string | undefined;
  channel?: string | undefined;
  delivery: "none" | "announce";
  text: string;
  context?: object | undefined;
};

type HookStarted = { body: AgentHookReply; replayed: boolean };

/** Starts a turn apart from people's conversations. It is answered when it is stored. */
async function startHook(core: Core, request: HookTurn, ctx: HookContext): Promise<HookStarted> {
  const { session, model, channel, delivery, text, context } = request;
  // A named agent may have left the configuration: a repeat is answered all the same, and turns.start refuses the rest.
  const agent = request.agent ?? core.agents.get(undefined).name;
  const announce = announceOf(core.settings(), { delivery, channel, hops: ctx.hops });
  const isUnaddressed = delivery === "announce" && !announce;
  if (isUnaddressed) ctx.note("announcement.unaddressed", JSON.stringify({ channel }));
  const { turn, replayed } = await core.turns.start({
    place: {
      sessionId: session ?? `webhook:${newBareId(core.clock.now())}`,
      agent,
      channel: channel ?? "webhook",
      userId: ctx.caller.name,
    },
    surface: "hooks",
    caller: ctx.caller.name,
    hops: ctx.hops,
    idempotency: ctx.idempotency,
    delivery: ctx.delivery(),
    text,
    outside: true,
    context: context && JSON.stringify(context),
    model,
    announce,
  });
  return {
    body: {
      status: 200,
      message: "turn started",
      sessionId: turn.sessionId,
      turnId: turn.turnId,
      // A repeat is told of the turn that the first request started.
      deliveryId: turn.deliveryId ?? ctx.delivery().deliveryId,
      agent: turn.agent,
      model: turn.model ?? core.agents.find(turn.agent)?.model ?? null,
      channel: channel ?? null,
      delivery,
      ...(isUnaddressed && { warning: unaddressed(channel) }),
    },
    replayed,
  };
}

function unaddressed(channel: string | undefined): string {
  const named = channel === undefined ? "the request names no `channel`" : `\`${channel}\` is not among \`channels\``;
  return `No channel takes the announcement: ${named}, and gateway.announceTo is not set. Subscribers alone are told of the reply.`;
}
