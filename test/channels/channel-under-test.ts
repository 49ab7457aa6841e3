import { setMaxListeners } from "node:events";
import { expect } from "vitest";
import type { AnnouncedReply, Channel, Outcome, Unsendable } from "#channels/channel.ts";
import { createPost, type Post } from "#channels/post.ts";
import type { Clock } from "#kit/clock.ts";
import { createManualClock, START } from "#test/harness/clock.ts";
import { type Behaviour, type Receiver, startReceiver } from "./receiver.ts";

/** A channel for the suite. */
export type ChannelUnderTest = {
  name: string;
  open(url: string, parts: { post: Post; clock: Clock }): Channel;
};

export const SECRET = "a-secret-that-signs-announcements";

export function replyOf(more: Partial<AnnouncedReply> = {}): AnnouncedReply {
  return {
    turnId: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
    sessionId: "webhook:alerts",
    agent: "main",
    channel: "ops",
    model: undefined,
    reply: "Three alerts.",
    usage: { input: 12, output: 34 },
    deliveryId: "dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
    createdAt: START,
    endedAt: START + 1_333,
    hops: 0,
    ...more,
  };
}

export function failed(reason: string | RegExp, more: object = {}): Outcome {
  return {
    kind: "failed",
    code: undefined,
    reason: typeof reason === "string" ? reason : expect.stringMatching(reason),
    retryAfterMs: undefined,
    ...more,
  } as Outcome;
}

/** A clock that reports when a number of timers have been set. */
function createWatchedClock() {
  const clock = createManualClock();
  let count = 0;
  let look = () => {};
  const { after } = clock;
  clock.after = (ms, fire) => {
    count++;
    look();
    return after(ms, fire);
  };
  const timersSet = (wanted: number): Promise<void> =>
    new Promise((resolve) => {
      look = () => count >= wanted && setImmediate(resolve);
      look();
    });
  return { clock, timersSet };
}

/** An open channel, and the parts of it that a test controls. */
export type Opened = ReturnType<typeof createWatchedClock> & {
  channel: Channel;
  signal: AbortSignal;
  abort(): void;
};

/** The suite's calls of a channel. */
export function callsOn({ open }: ChannelUnderTest) {
  /** Announces once to a server with this behaviour. `meanwhile` runs as soon as the request, or the connection, has arrived. */
  const announceTo = async (
    behaviour: Behaviour,
    {
      meanwhile,
      ...options
    }: Partial<Parameters<typeof openFor>[1]> & { meanwhile?: (opened: Opened) => unknown } = {},
  ): Promise<Outcome | Unsendable> => {
    await using receiver = await startReceiver([behaviour], { tls: options.tls });
    const opened = openFor(receiver, options);
    const announced = opened.channel.announce(replyOf(), opened.signal);
    if (meanwhile) await Promise.race([announced, receiver.received(1).then(() => meanwhile(opened))]);
    const outcome = await announced;
    await receiver.left();
    expect(opened.clock.timers()).toBe(0);
    return outcome;
  };
  const openFor = (
    { url }: Pick<Receiver, "url">,
    { ca, path = "/in?of=ops" }: { ca?: string; path?: string; tls?: { cert: string; key: string } | undefined } = {},
  ): Opened => {
    const { clock, timersSet } = createWatchedClock();
    const controller = new AbortController();
    setMaxListeners(50, controller.signal);
    const channel = open(url + path, { post: createPost({ clock, ca, connectMs: 500 }), clock });
    return { channel, clock, timersSet, signal: controller.signal, abort: () => controller.abort() };
  };
  return { announceTo, openFor };
}
