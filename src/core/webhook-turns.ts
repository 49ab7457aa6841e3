import { newBareId } from "#kit/ids.ts";
import type { Turn } from "#store/store.ts";
import type { HookContext } from "./call.ts";
import type { Mapping } from "./mappings.ts";
import { announceOf } from "./outbox/announcements.ts";
import type { CoreParts } from "./parts.ts";
import type { Turns } from "./turns/turns.ts";

/** A webhook's description of the turn that it starts. */
export type WebhookTurn = {
  /** Undefined is the default agent. */
  agent?: string | undefined;
  /** A `webhook:` session. Undefined is a new one. */
  session?: string | undefined;
  model?: string | undefined;
  channel?: string | undefined;
  delivery: "none" | "announce";
  text: string;
  context?: object | undefined;
};

export type StartedWebhook = Pick<WebhookTurn, "channel" | "delivery"> & {
  turn: Turn;
  replayed: boolean;
  /** The requested model of the turn, or the model of its agent. */
  model: string | undefined;
  /** True if the reply should be announced, but no channel is configured for it. */
  isUnaddressed: boolean;
};

type ModelChoice = { agent: string; model?: string | undefined };

/** Starts the turns of webhooks, in sessions apart from people's conversations. */
export function createWebhookTurns({ settings, agents, clock, turns }: CoreParts & { turns: Turns }) {
  const modelOf = ({ agent, model }: ModelChoice): string | undefined => model ?? agents.find(agent)?.model;

  /** Resolves when the turn is stored. */
  const start = async (request: WebhookTurn, ctx: HookContext): Promise<StartedWebhook> => {
    const { session, model, channel, delivery, text, context } = request;
    // A named agent may have been removed from the configuration. A repeated request gets its answer, and turns.start refuses a new one.
    const agent = request.agent ?? agents.get(undefined).name;
    const announce = announceOf(settings(), { delivery, channel, hops: ctx.hops });
    const isUnaddressed = delivery === "announce" && !announce;
    if (isUnaddressed) ctx.note("announcement.unaddressed", JSON.stringify({ channel }));
    const { turn, replayed } = await turns.start({
      place: {
        sessionId: session ?? `webhook:${newBareId(clock.now())}`,
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
    return { turn, replayed, model: modelOf(turn), channel, delivery, isUnaddressed };
  };

  return {
    start,

    /**
     * Starts the turn of the mapping that takes the request: the named one, or the first that matches. Undefined if none does. The timeline of
     * the request shows why earlier mappings did not match.
     */
    async startMapped(body: unknown, ctx: HookContext, mappingName?: string) {
      const { mappings } = settings();
      const choice = mappings.choose({ headers: ctx.headers, body }, mappingName);
      ctx.note("mapping.tried", mappings.noteOf(choice));
      if (!choice.chosen) {
        ctx.answer = "unmatched";
        return undefined;
      }
      const { mapping, message: text } = choice.chosen;
      const { name, agent, session, model, channel, delivery } = mapping;
      ctx.mapping = name;
      ctx.note("message.rendered", JSON.stringify({ mapping: name, characters: text.length }));
      const started = await start({ agent, session, model, channel, delivery, text }, ctx);
      return { ...started, mapping: name };
    },

    /** The channel that announces the replies of a mapping's turns, and the model that writes them. */
    plan: (mapping: Mapping): { announceTo: string | undefined; model: string | undefined } => ({
      announceTo: announceOf(settings(), { delivery: mapping.delivery, channel: mapping.channel, hops: 0 })?.channel,
      model: modelOf(mapping),
    }),
  };
}
