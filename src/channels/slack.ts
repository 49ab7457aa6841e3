import type { Channel } from "./channel.ts";
import type { Post } from "./post.ts";

/** The longest text that Slack does not cut. */
const LONGEST_TEXT = 40_000;
const CUT = "…";
const NO_TEXT = "(The reply is empty.)";

/** Posts a reply's text to an incoming webhook of Slack. The webhook's address is the secret. */
export function createSlackChannel(settings: { url: string }, { post }: { post: Post }): Channel {
  const url = new URL(settings.url);
  return {
    kind: "slack",
    announce({ reply, hops }, signal) {
      const body = Buffer.from(JSON.stringify({ text: slackTextOf(reply) }));
      return post({ url, headers: {}, body, hops: hops + 1 }, signal);
    },
  };
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/**
 * The text in a form that Slack shows unchanged: the three characters are escaped by which a reply could call people or hide an
 * address behind a name.
 */
export function slackTextOf(reply: string): string {
  if (reply.trim() === "") return NO_TEXT;
  const escaped = reply.replace(/[&<>]/g, (letter) => ESCAPES[letter] as string);
  if (escaped.length <= LONGEST_TEXT) return escaped;
  // The text must not end in half an escape or half a character.
  const cut = escaped.slice(0, LONGEST_TEXT - CUT.length).replace(/&[a-z]{0,3}$|[\uD800-\uDBFF]$/, "");
  return cut + CUT;
}
