import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { SharedStore, StoreWatcher } from "#store/store.ts";
import { createLiveReplies, type LiveReplies } from "./live-replies.ts";
import { createRepliesElsewhere } from "./replies-elsewhere.ts";
import { createRepliesForOthers } from "./replies-for-others.ts";

type Parts = { shared: SharedStore; clock: Clock; events: Pick<Events, "storeFailed"> };

/**
 * Replies that are being written, where several gateways share a store: who reads one that another gateway writes gets it from there, in
 * batches. As long as nobody does, no text travels.
 */
export const createSharedReplies = (parts: Parts) => {
  const live = createLiveReplies();
  const elsewhere = createRepliesElsewhere({ ...parts, live });
  const forOthers = createRepliesForOthers({ ...parts, live });

  const all: LiveReplies = {
    ...live,
    read(turn, wake) {
      const leave = live.read(turn, wake);
      const leaveElsewhere = elsewhere.read(turn.sessionId);
      return () => {
        leave();
        leaveElsewhere();
      };
    },
    seek: elsewhere.seek,
  };
  const watcher: Required<Pick<StoreWatcher, "entries" | "textsAsked" | "textsPut">> = {
    entries: ({ sessionId }, entries) => elsewhere.entries(sessionId, entries),
    textsAsked: forOthers.textsAsked,
    textsPut: elsewhere.textsPut,
  };
  return {
    live: all,
    watcher,
    close(): void {
      elsewhere.close();
      forOthers.close();
    },
  };
};
