import { expect, test } from "vitest";
import { createSessionStreams, type SessionStream, type SessionTaker } from "#core/sessions/session-streams.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Entry, Store } from "#store/store.ts";

const created = { seq: 1, at: 1, turnId: "turn_1", name: "message.created", role: "assistant" } as Entry;
const completed = { seq: 2, at: 2, turnId: "turn_1", name: "message.completed", text: "hi" } as Entry;

function nothing(): void {}

/** A session whose reply another gateway writes. Counts the lasting and the single requests to that gateway. */
function createStream(stored: readonly Entry[]) {
  const requests = { lasting: 0, single: 0 };
  const copy = { turnId: "turn_1", messageId: "msg_1", seq: 1, length: 2, pieces: ["hi"], isCopy: true };
  const found: { reply?: typeof copy; notify(): void } = { notify: nothing };
  const live = {
    ofSession: () => found.reply,
    read: () => {
      requests.lasting++;
      return nothing;
    },
    seek: (_: string, notify: () => void) => {
      requests.single++;
      found.notify = notify;
      return nothing;
    },
  } as unknown as LiveReplies;
  const store = { readEntries: async () => stored, getSession: async () => undefined } as unknown as Store;
  const stream = createSessionStreams({ store, live }).of("chat:a");
  return {
    stream,
    requests,
    /** Another gateway sends the text of the reply. */
    find(): void {
      found.reply = copy;
      found.notify();
    },
  };
}

function createTaker(wantsPieces = true) {
  const calls = { written: 0, quiet: 0 };
  const taker: SessionTaker = {
    isFull: false,
    hasRoom: true,
    wants: () => true,
    take: nothing,
    onGap: nothing,
    onBackfill: nothing,
    wantsPieces: () => wantsPieces,
    written: () => void calls.written++,
    quiet: () => void calls.quiet++,
    deleted: nothing,
  };
  return { taker, calls };
}

async function catchUp(stream: SessionStream, taker: SessionTaker): Promise<void> {
  const follower = stream.follow(taker);
  follower.start(0);
  expect(await follower.page(32)).toBe(false);
}

test.each([
  ["until its end, if the reply is unfinished", [created], true, { lasting: 1, single: 0 }],
  ["once, if no reply is unfinished", [created, completed], true, { lasting: 0, single: 1 }],
  ["never, if no follower needs pieces", [created], false, { lasting: 0, single: 0 }],
])("a late follower requests a reply from other gateways %s", async (_, stored, wantsPieces, requests) => {
  const created = createStream(stored);
  await catchUp(created.stream, createTaker(wantsPieces).taker);
  expect(created.requests).toEqual(requests);
});

test("a late follower gets no pieces of a reply whose end it has read", async () => {
  const { stream, requests, find } = createStream([created, completed]);
  const { taker, calls } = createTaker();
  await catchUp(stream, taker);
  find();
  await yieldToOthers();
  expect([calls.written, requests.lasting]).toEqual([0, 0]);
});

test("a follower that reaches the end of the stream notifies no other follower", async () => {
  const { stream } = createStream([created, completed]);
  const [first, second] = [createTaker(), createTaker()];
  await catchUp(stream, first.taker);
  await catchUp(stream, second.taker);
  expect([first.calls.quiet, second.calls.quiet]).toEqual([1, 1]);
});
