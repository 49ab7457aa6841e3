import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { AgentHookReply } from "#generated/hooks-handlers.ts";
import { newBareId } from "#kit/ids.ts";

/** The turn that a webhook asks for. */
export type HookTurn = {
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
export const startHook = async (core: Core, wish: HookTurn, ctx: HookContext): Promise<HookStarted> => {
  const { session, model, channel, delivery, text, context } = wish;
  // A named agent may have left the configuration: a repeat is answered all the same, and turns.start refuses the rest.
  const agent = wish.agent ?? core.agents.get(undefined).name;
  const { hops } = ctx;
  const announce = core.announce({ delivery, channel, hops });
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
    text,
    outside: true,
    context: context && JSON.stringify(context),
    model,
    announce,
    hops,
    idempotency: ctx.idempotency,
    delivery: ctx.delivery(),
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
};

const unaddressed = (channel: string | undefined): string => {
  const named = channel === undefined ? "the request names no `channel`" : `\`${channel}\` is not among \`channels\``;
  return `No channel takes the announcement: ${named}, and gateway.announceTo is not set. Subscribers alone are told of the reply.`;
};
