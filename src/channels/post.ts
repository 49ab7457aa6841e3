import type { Clock } from "#kit/clock.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import { type Answer, ask, MIB, openAgent, targetOf } from "#outbound/ask.ts";
import type { Outcome } from "./channel.ts";

const CONNECT_MS = 5_000;
/** The time limit for an answer. Together with the time for its rest it is less than `LONGEST_CALL_MS`. */
const ANSWER_MS = 15_000;

type Posting = {
  url: URL;
  headers: Record<string, string>;
  /** JSON. */
  body: Buffer;
  hops: number;
  /** Returns the outcome of a 2xx answer from its body. If absent, the status decides and the body is ignored. */
  judge?: (answer: JudgedAnswer) => Outcome;
};
export type JudgedAnswer = { code: number; text: string; retryAfterMs: number | undefined };

/** Makes one call and returns its outcome; never rejects. */
export type Post = (posting: Posting, signal: AbortSignal) => Promise<Outcome>;

type PostSettings = { clock: Clock; ca?: string | undefined; connectMs?: number };

/** The maximum length of a body that `judge` gets. Slack's answers repeat the message. */
const JUDGED_BYTES = MIB;

/** Posts to the addresses of channels. Each call has its own connection. */
export function createPost({ clock, ca, connectMs = CONNECT_MS }: PostSettings): Post {
  const agent = openAgent(connectMs, ca);
  return async ({ url, headers, body, hops, judge }, signal) => {
    const sent = {
      "content-type": "application/json",
      "user-agent": "agent-gateway",
      [HOPS_HEADER]: String(hops),
      ...headers,
    };
    const request = { method: "POST", ...targetOf(url), headers: sent, body, reset: true } as const;
    try {
      const answer = await ask(agent, "it", request, signal, { clock, ms: ANSWER_MS });
      if (judge && isSuccess(answer.status)) {
        const text = await answer.text(JUDGED_BYTES);
        return judge({ code: answer.status, text, retryAfterMs: answer.again(clock).retryAfterMs });
      }
      await answer.rest(clock);
      return outcomeOf(answer, clock);
    } catch (error) {
      return failed(signal.aborted ? "the gateway stopped" : (error as Error).message);
    }
  };
}

function failed(reason: string): Outcome {
  return { kind: "failed", code: undefined, reason, retryAfterMs: undefined };
}

function isSuccess(code: number): boolean {
  return code >= 200 && code < 300;
}

function outcomeOf(answer: Answer, clock: Clock): Outcome {
  const { status: code } = answer;
  if (isSuccess(code)) return { kind: "delivered", code };
  if (code === 410) return { kind: "refused", code, reason: "410 Gone" };
  const redirected = code >= 300 && code < 400 ? ", and redirects are not followed" : "";
  const { retryAfterMs } = answer.again(clock);
  return { kind: "failed", code, reason: `HTTP ${code}${redirected}`, retryAfterMs };
}
