import { newBareId } from "#kit/ids.ts";
import { excerptOf, type MappedRequest } from "#kit/mapping-paths.ts";
import type { OpenGroup, Turn, TurnGroup } from "#store/store.ts";
import type { HookContext } from "./call.ts";
import { fillPlaces, type Places } from "./mapping-places.ts";
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
  /** The address of the reply in the channel. */
  to?: string | undefined;
  thread?: string | undefined;
  text: string;
  context?: object | undefined;
  /** Merges it with the requests of the same key. */
  group?: TurnGroup | undefined;
};

export type StartedWebhook = Pick<WebhookTurn, "channel" | "delivery"> & {
  turn: Turn;
  replayed: boolean;
  /** The delivery of a request that joined an open turn, also if the request is repeated. */
  joinedBy: string | undefined;
  /** The requested model of the turn, or the model of its agent. */
  model: string | undefined;
  /** True if the reply should be announced, but no channel is configured for it. */
  isUnaddressed: boolean;
};

type ModelChoice = { agent: string; model?: string | undefined };

/** Starts the turns of webhooks, in sessions apart from people's conversations. */
export function createWebhookTurns(parts: CoreParts & { turns: Turns }) {
  const { settings, agents, clock, store, events, hide, turns } = parts;
  const modelOf = ({ agent, model }: ModelChoice): string | undefined => model ?? agents.find(agent)?.model;

  /** Resolves when the turn is stored. */
  const start = async (request: WebhookTurn, ctx: HookContext): Promise<StartedWebhook> => {
    const { session, model, channel, delivery, to, thread, text, context, group } = request;
    // A named agent may have been removed from the configuration. A repeated request gets its answer, and turns.start refuses a new one.
    const agent = request.agent ?? agents.get(undefined).name;
    const announce = announceOf(settings(), { delivery, channel, to, thread, hops: ctx.hops });
    const isUnaddressed = delivery === "announce" && !announce;
    if (isUnaddressed) ctx.note("announcement.unaddressed", JSON.stringify({ channel }));
    const { turn, replayed, joinedBy } = await turns.start({
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
      group,
    });
    return { turn, replayed, joinedBy, model: modelOf(turn), channel, delivery, isUnaddressed };
  };

  /** The channel that announces the replies of a mapping's turns, and the model that writes them. */
  const targetOf = (mapping: Mapping): WebhookTarget => ({
    announceTo: announceOf(settings(), { delivery: mapping.delivery, channel: mapping.channel, hops: 0 })?.channel,
    model: modelOf(mapping),
  });

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
      const { name, agent, model, channel, delivery } = mapping;
      ctx.mapping = name;
      const places = fillPlaces(mapping.places, { headers: ctx.headers, body }, hide);
      noteRendered(ctx, mapping, text, places, mappings.recordBodies);
      const { session, to, thread } = places;
      const group = mappings.groupOf(mapping, places);
      const started = await start({ agent, session, model, channel, delivery, to, thread, text, group }, ctx);
      if (started.joinedBy !== undefined && !started.replayed)
        events.webhookCoalesced({ mapping: name, turnId: started.turn.turnId });
      return { ...started, mapping: name };
    },

    /** The turn that a mapping would start for a request, without starting it: its session, its address, and the open group that it would join. */
    async plan(mapping: Mapping, request: MappedRequest): Promise<PlannedWebhook> {
      const places = fillPlaces(mapping.places, request, hide);
      const group = settings().mappings.groupOf(mapping, places);
      const joins = group && (await store.findGroup(group.key, clock.now()));
      return { ...targetOf(mapping), ...places, session: joins?.sessionId ?? places.session, group, joins };
    },

    targetOf,
  };
}

export type WebhookTarget = { announceTo: string | undefined; model: string | undefined };
export type PlannedWebhook = WebhookTarget & Places & { group: TurnGroup | undefined; joins: OpenGroup | undefined };

/** The steps of a message: values of the body are shown only if bodies are recorded, but the session has its name. */
function noteRendered(ctx: HookContext, mapping: Mapping, text: string, places: Places, showsKey: boolean): void {
  const without = [...new Set(places.lacks.flatMap((lack) => lack.without ?? []))];
  const detail = {
    mapping: mapping.name,
    characters: text.length,
    // A session of its own has its name in the turn.
    ...(places.session !== mapping.session && { session: places.session }),
    ...(showsKey && places.key !== undefined && { group_key: excerptOf(places.key) }),
    ...(without.length > 0 && { without }),
  };
  ctx.note("message.rendered", JSON.stringify(detail));
  for (const { field, reason } of places.lacks)
    if (reason !== undefined) ctx.note("announcement.misaddressed", JSON.stringify({ field, reason }));
}
