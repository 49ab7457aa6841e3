import type { TurnOrder } from "#store/store.ts";

/** Where announcements can go. */
export type AnnounceSettings = { channels: { has(name: string): boolean }; announceTo: string | undefined };

/**
 * What a turn is started with so that its reply is announced: to the configured channel that its label names, else to the one for those
 * that name none. Undefined where it did not ask, or there is neither: then subscribers alone hear of it.
 */
export const announceOf = (
  { channels, announceTo }: AnnounceSettings,
  wish: { delivery: "none" | "announce" | undefined; channel: string | undefined; hops: number },
): TurnOrder["announce"] => {
  if (wish.delivery !== "announce") return undefined;
  const channel = wish.channel !== undefined && channels.has(wish.channel) ? wish.channel : announceTo;
  return channel === undefined ? undefined : { channel, hops: wish.hops };
};
