import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { ReplyText, SharedStore } from "#store/store.ts";
import type { LiveReplies, LiveReply } from "./live-replies.ts";

/** How long an answer to one question lasts: who goes on reading asks again. */
const ASKED_MS = 10_000;
/** Text goes in batches, so that a reply of a thousand pieces is a few dozen writes. */
const PUT_EVERY_MS = 75;
/** Of more sessions than this nobody asks in earnest. */
const MOST_ASKED = 10_000;

type Asked = { until: number; reply: LiveReply | undefined; put: number };

type Parts = {
  shared: SharedStore;
  live: LiveReplies;
  clock: Clock;
  events: Pick<Events, "storeFailed">;
};

/** Puts replies that are being written here where other gateways read them, those of sessions that somebody there follows. */
export const createRepliesForOthers = ({ shared, live, clock, events }: Parts) => {
  const asked = new Map<string, Asked>();
  let stopTimer: (() => void) | undefined;
  let isClosed = false;

  const put = async (): Promise<void> => {
    const now = clock.monotonic();
    const gone: Pick<ReplyText, "sessionId" | "seq">[] = [];
    const pieces: ReplyText[] = [];
    const sent: { one: Asked; length: number }[] = [];
    for (const [sessionId, one] of asked) {
      const found = live.ofSession(sessionId);
      const reply = found && !found.isCopy && one.until > now ? found : undefined;
      if (one.reply !== reply) {
        if (one.reply && one.put > 0) gone.push({ sessionId, seq: one.reply.seq });
        one.reply = reply;
        one.put = 0;
      }
      if (one.until <= now) asked.delete(sessionId);
      if (!reply || reply.length === one.put) continue;
      const { turnId, messageId, seq, length } = reply;
      pieces.push({ sessionId, turnId, messageId, seq, offset: one.put, text: live.textSince(reply, one.put) });
      sent.push({ one, length });
    }
    try {
      if (pieces.length > 0) await shared.putTexts(pieces);
      for (const { one, length } of sent) one.put = length;
      if (gone.length > 0) await shared.dropTexts(gone);
    } catch (error) {
      events.storeFailed({ operation: "putTexts", error });
    }
  };

  const putLater = (): void => {
    stopTimer = clock.after(PUT_EVERY_MS, () => {
      void put().finally(() => {
        stopTimer = undefined;
        if (asked.size > 0 && !isClosed) putLater();
      });
    });
  };

  return {
    textsAsked(sessionIds: readonly string[]): void {
      const until = clock.monotonic() + ASKED_MS;
      for (const sessionId of sessionIds) {
        const one = asked.get(sessionId);
        if (one) one.until = until;
        else if (asked.size < MOST_ASKED) asked.set(sessionId, { until, reply: undefined, put: 0 });
      }
      if (asked.size > 0 && !stopTimer && !isClosed) putLater();
    },
    close(): void {
      isClosed = true;
      stopTimer?.();
    },
  };
};
