import { expect, test } from "vitest";
import { createSessionStreams, type SessionTaker } from "#core/sessions/session-streams.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Entry, Store } from "#store/store.ts";

const created = { seq: 1, at: 1, turnId: "turn_1", name: "message.created", role: "assistant" } as Entry;
const completed = { seq: 2, at: 2, turnId: "turn_1", name: "message.completed", text: "hi" } as Entry;

/** Follows a session whose reply another gateway writes. Counts the lasting and the single requests to that gateway. */
async function followElsewhere(stored: readonly Entry[], wantsPieces: boolean) {
  const requests = { lasting: 0, single: 0 };
  const live = {
    ofSession: () => undefined,
    read: () => {
      requests.lasting++;
      return () => {};
    },
    seek: () => {
      requests.single++;
      return () => {};
    },
  } as unknown as LiveReplies;
  const store = { readEntries: async () => stored, getSession: async () => undefined } as unknown as Store;
  const nothing = (): void => {};
  const taker: SessionTaker = {
    isFull: false,
    hasRoom: true,
    wants: () => true,
    take: nothing,
    gap: nothing,
    behind: nothing,
    wantsPieces: () => wantsPieces,
    written: nothing,
    deleted: nothing,
  };
  const follower = createSessionStreams({ store, live }).of("chat:a").follow(taker);
  follower.start(0);
  expect(await follower.page(32)).toBe(false);
  return requests;
}

test.each([
  ["until its end, if the reply is unfinished", [created], true, { lasting: 1, single: 0 }],
  ["once, if no reply is unfinished", [created, completed], true, { lasting: 0, single: 1 }],
  ["never, if no follower needs pieces", [created], false, { lasting: 0, single: 0 }],
])("a late follower requests a reply from other gateways %s", async (_, stored, wantsPieces, requests) => {
  expect(await followElsewhere(stored, wantsPieces)).toEqual(requests);
});
