import type { Clock } from "#kit/clock.ts";
import type { NotifyEndpoint } from "./channel.ts";
import type { Post } from "./post.ts";
import { createSignedPost } from "./signed-post.ts";

/** Posts events, signed as Standard Webhooks. The body is the same in each attempt. */
export function createNotifyEndpoint(
  { content, ...settings }: { url: string; secret: string; content: "none" | "reply" },
  parts: { post: Post; clock: Clock },
): NotifyEndpoint {
  const send = createSignedPost(settings, parts);
  return {
    hasReplies: content === "reply",
    notify({ eventId: id, type, at, data, hops }, signal) {
      const timestamp = new Date(at).toISOString();
      return send({ id, body: `{"type":"${type}","timestamp":"${timestamp}","data":${data}}`, hops }, signal);
    },
  };
}
