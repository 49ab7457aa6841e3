import type { AnnouncedReply, Channel, Outcome } from "#channels/channel.ts";

/** One call that a test answers. */
type Call = {
  reply: AnnouncedReply;
  signal: AbortSignal;
  answer(outcome: Outcome): void;
  fail(error: unknown): void;
};

export const DELIVERED: Outcome = { kind: "delivered", code: 200 };
export const GONE: Outcome = { kind: "refused", code: 410, reason: "410 Gone" };
export function failing(retryAfterMs?: number): Outcome {
  return { kind: "failed", code: 503, reason: "HTTP 503", retryAfterMs };
}

/** A channel that a test controls. Calls get `outcomes`, one after another. Further calls wait for the test, or until the gateway stops. */
export function createPlayedChannel(outcomes: readonly Outcome[] = []) {
  const calls: Call[] = [];
  const waiting = new Set<Call>();
  const announce: Channel["announce"] = (reply, signal) =>
    new Promise((resolve, reject) => {
      const over = () => {
        waiting.delete(call);
        signal.removeEventListener("abort", stop);
      };
      const call: Call = {
        reply,
        signal,
        answer: (outcome) => {
          over();
          resolve(outcome);
        },
        fail: (error) => {
          over();
          reject(error);
        },
      };
      const stop = () => call.answer({ kind: "failed", code: undefined, reason: "stopped", retryAfterMs: undefined });
      signal.addEventListener("abort", stop, { once: true });
      waiting.add(call);
      const next = outcomes[calls.push(call) - 1];
      if (next) call.answer(next);
    });
  const channel: Channel = { kind: "webhook", announce };
  return { channel, calls, waiting };
}

export type PlayedChannel = ReturnType<typeof createPlayedChannel>;
