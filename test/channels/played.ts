import type { AnnouncedReply, Channel, NotifyEndpoint, Outcome, SentNotification } from "#channels/channel.ts";

/** One call that a test answers. */
type Call<T> = {
  sent: T;
  signal: AbortSignal;
  answer(outcome: Outcome): void;
  fail(error: unknown): void;
};

export const DELIVERED: Outcome = { kind: "delivered", code: 200 };
export const GONE: Outcome = { kind: "refused", code: 410, reason: "410 Gone" };
export function failing(retryAfterMs?: number): Outcome {
  return { kind: "failed", code: 503, reason: "HTTP 503", retryAfterMs };
}

/** A receiver that a test controls. Calls get `outcomes`, one after another. Further calls wait for the test, or until the gateway stops. */
function createPlayed<T>(outcomes: readonly Outcome[]) {
  const calls: Call<T>[] = [];
  const waiting = new Set<Call<T>>();
  const send = (sent: T, signal: AbortSignal): Promise<Outcome> =>
    new Promise((resolve, reject) => {
      const over = () => {
        waiting.delete(call);
        signal.removeEventListener("abort", stop);
      };
      const call: Call<T> = {
        sent,
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
  return { calls, waiting, send };
}

export function createPlayedChannel(outcomes: readonly Outcome[] = []) {
  const { send, ...played } = createPlayed<AnnouncedReply>(outcomes);
  const channel: Channel = { kind: "webhook", announce: send };
  return { ...played, channel };
}

export type PlayedChannel = ReturnType<typeof createPlayedChannel>;

/** An endpoint of notifications that a test controls. */
export function createPlayedEndpoint(outcomes: readonly Outcome[] = [], hasReplies = false) {
  const { send, ...played } = createPlayed<SentNotification>(outcomes);
  const endpoint: NotifyEndpoint = { hasReplies, notify: send };
  return { ...played, endpoint };
}

export type PlayedEndpoint = ReturnType<typeof createPlayedEndpoint>;
