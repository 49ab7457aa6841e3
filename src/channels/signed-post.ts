import type { Clock } from "#kit/clock.ts";
import { sign, signingKeyOf } from "#kit/signing.ts";
import type { Outcome } from "./channel.ts";
import type { Post } from "./post.ts";

export type Posted = { id: string; body: string; hops: number };

/** Returns a function that posts JSON to an address, signed as Standard Webhooks. The receiver gets one hop more. */
export function createSignedPost(
  settings: { url: string; secret: string },
  { post, clock }: { post: Post; clock: Clock },
): (posted: Posted, signal: AbortSignal) => Promise<Outcome> {
  const url = new URL(settings.url);
  const key = signingKeyOf(settings.secret);
  return ({ id, body: text, hops }, signal) => {
    const body = Buffer.from(text);
    const timestamp = String(Math.floor(clock.now() / 1_000));
    const headers = {
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": sign(key, id, timestamp, body),
    };
    return post({ url, headers, body, hops: hops + 1 }, signal);
  };
}
