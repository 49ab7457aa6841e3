import type { Announcement } from "#generated/rest-types.ts";
import type { Clock } from "#kit/clock.ts";
import { showCompleted } from "#kit/usages.ts";
import type { AnnouncedReply, Channel } from "./channel.ts";
import type { Post } from "./post.ts";
import { createSignedPost } from "./signed-post.ts";

/** Posts a reply as an event, signed as Standard Webhooks. Its id is the turn's id, so that a receiver recognises a repeat. */
export function createWebhookChannel(
  settings: { url: string; secret: string },
  { post, clock }: { post: Post; clock: Clock },
): Channel {
  const send = createSignedPost(settings, { post, clock });
  return {
    kind: "webhook",
    announce: (reply, signal) =>
      send({ id: reply.turnId, body: JSON.stringify(eventOf(reply)), hops: reply.hops }, signal),
  };
}

/** The same bytes at every attempt. */
function eventOf(announced: AnnouncedReply): Announcement {
  const { turnId, sessionId, agent, channel, reply, usage } = announced;
  const endedAt = new Date(announced.endedAt).toISOString();
  return {
    type: "turn.completed",
    timestamp: endedAt,
    data: {
      turnId,
      sessionId,
      agent,
      channel,
      reply,
      model: announced.model ?? null,
      usage: showCompleted(usage),
      deliveryId: announced.deliveryId ?? null,
      createdAt: new Date(announced.createdAt).toISOString(),
      endedAt,
    },
  };
}
