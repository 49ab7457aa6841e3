import type { Outcome, Unsendable } from "#channels/channel.ts";
import type { CoreParts } from "#core/parts.ts";
import type { CoreSettings } from "#core/settings.ts";
import { GatewayError } from "#kit/errors.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import { NO_USAGE } from "#kit/usages.ts";
import type { AnnounceOrder, OutgoingReply, TurnAnnouncement } from "#store/store.ts";

/** The names of the configured channels. */
type Channels = { channels: { has(name: string): boolean } };

/**
 * The announcement of a turn's reply: to the channel of the request if it is configured, otherwise to the default channel. Undefined if the turn
 * did not ask for one, or neither channel exists: then only WebSocket subscribers receive the reply. The address is one in the channel of the
 * request, so the default channel does not get it.
 */
export function announceOf(
  { channels, announceTo }: Channels & Pick<CoreSettings, "announceTo">,
  request: Omit<AnnounceOrder, "channel"> & { delivery: "none" | "announce" | undefined; channel: string | undefined },
): AnnounceOrder | undefined {
  if (request.delivery !== "announce") return undefined;
  const channel = request.channel !== undefined && channels.has(request.channel) ? request.channel : announceTo;
  if (channel === undefined) return undefined;
  const { hops, to, thread } = request;
  return channel === request.channel && (to ?? thread) !== undefined
    ? { channel, hops, to, thread }
    : { channel, hops };
}

/** Throws if the reply cannot be announced again. `last` is its last announcement. */
export function checkAgain({ channels }: Channels, last: TurnAnnouncement, hops: number): void {
  const most = Math.max(hops, last.hops);
  if (isLoop(most)) throw new GatewayError("reply-not-announceable", `The reply is not sent again: ${loopWords()}.`);
  const { channel } = last;
  if (!channels.has(channel))
    throw new GatewayError("reply-not-announceable", `The channel ${channel} was removed from the configuration.`);
}

/** Sends the reply of a turn to its channel once. */
export async function sendReply(
  { store, settings }: Pick<CoreParts, "store" | "settings">,
  { id: turnId, sessionId, agent, channel: name, deliveryId, hops }: OutgoingReply,
  signal: AbortSignal,
): Promise<Outcome | Unsendable> {
  const channel = settings().channels.get(name);
  if (!channel) return unsendable("the channel was removed from the configuration");
  if (isLoop(hops)) return unsendable(loopWords());
  const turn = await store.getTurn(turnId);
  if (turn?.reply === undefined) return unsendable("its turn is no longer stored");
  const { model, reply, usage = NO_USAGE, createdAt, endedAt = createdAt } = turn;
  const { to, thread } = turn.announcement ?? {};
  const ended = { model, reply, usage, createdAt, endedAt };
  const what = { turnId, sessionId, agent, channel: name, deliveryId, hops, to, thread, ...ended };
  return await channel.announce(what, signal);
}

export function unsendable(reason: string): Unsendable {
  return { kind: "unsendable", reason };
}
