import type { Channel, Outcome } from "./channel.ts";
import type { JudgedAnswer, Post } from "./post.ts";

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

const POST_MESSAGE = "https://slack.com/api/chat.postMessage";
const NO_ADDRESS = "the reply has no Slack channel: set `to` of the mapping or of the channel";
const NO_API = "the answer is not one of Slack's API: check the channel's `url`";

type BotSettings = { botToken: string; url: string | undefined; to: string | undefined };

/**
 * Posts a reply's text as a bot of Slack: to the address of the reply, and into its thread, otherwise to the default one. Slack loads no address in
 * the text, so a reply cannot send data to other hosts.
 */
export function createSlackBot(settings: BotSettings, { post }: { post: Post }): Channel {
  const url = new URL(settings.url ?? POST_MESSAGE);
  const headers = { authorization: `Bearer ${settings.botToken}`, "content-type": "application/json; charset=utf-8" };
  return {
    kind: "slack",
    async announce({ reply, hops, to, thread }, signal) {
      const channel = to ?? settings.to;
      if (channel === undefined) return { kind: "unsendable", reason: NO_ADDRESS };
      const message = { channel, thread_ts: to && thread, text: slackTextOf(reply) };
      const body = Buffer.from(JSON.stringify({ ...message, unfurl_links: false, unfurl_media: false }));
      const judge = (answer: JudgedAnswer) => outcomeOf(answer, to !== undefined);
      return post({ url, headers, body, hops: hops + 1, judge }, signal);
    },
  };
}

/** Errors of Slack after which another try may succeed. */
const PASSING = new Set(
  [
    "ratelimited rate_limited message_limit_exceeded internal_error fatal_error service_unavailable request_timeout",
    "team_added_to_org org_login_required",
  ].flatMap((line) => line.split(" ")),
);
/** Errors of an address that do not concern the token. */
const OF_ADDRESS =
  /^(?:channel_not_found|not_in_channel|is_archived|thread_not_found|cannot_reply_to_message|messages_tab_disabled|restricted_action.*)$/;

/**
 * The outcome of a call of Slack's API, which reports most errors with the status 200. Another answer of success is final: it may be that of an
 * incoming webhook, which has posted the reply.
 */
function outcomeOf({ code, text, retryAfterMs }: JudgedAnswer, isOwnAddress: boolean): Outcome {
  const { ok, error } = parse(text);
  if (ok === true) return { kind: "delivered", code };
  // Only a well-formed error name is shown: an answer may repeat the token.
  const name = typeof error === "string" && /^[a-z][a-z_]{1,63}$/.test(error) ? error : "an unknown error";
  if (ok !== false) return { kind: "refused", code, reason: NO_API };
  const reason = `Slack answered ${name}`;
  if (PASSING.has(name)) return { kind: "failed", code, reason, retryAfterMs };
  return { kind: "refused", code, reason, isOfMessage: isOwnAddress && OF_ADDRESS.test(name) };
}

function parse(text: string): { ok?: unknown; error?: unknown } {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
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
