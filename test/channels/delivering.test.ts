import { expect, it } from "vitest";
import { createPost } from "#channels/post.ts";
import { createSlackChannel } from "#channels/slack.ts";
import { createWebhookChannel } from "#channels/webhook.ts";
import { startAnnouncing } from "#test/core/start-announcing.ts";
import type { WrapStore } from "#test/core/start-core.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { SECRET } from "./channel-under-test.ts";
import { answer, type Behaviour, reset, startReceiver } from "./receiver.ts";

const kinds = {
  webhook: (url: string, parts: Parameters<typeof createWebhookChannel>[1]) =>
    createWebhookChannel({ url, secret: SECRET }, parts),
  slack: (url: string, parts: Parameters<typeof createWebhookChannel>[1]) => createSlackChannel({ url }, parts),
};

/** The core with a real channel to a real server, and a clock that the test moves. */
async function startDelivering(kind: keyof typeof kinds, behave: readonly Behaviour[]) {
  const receiver = await startReceiver(behave);
  const clock = createManualClock();
  const channel = kinds[kind](receiver.url, { post: createPost({ clock }), clock });
  let ends = 0;
  let look = () => {};
  const ended = async (end: Promise<boolean>): Promise<boolean> => {
    const isOurs = await end;
    ends++;
    look();
    return isOurs;
  };
  const spied: WrapStore = (store) => ({
    endOutgoing: (...args) => ended(store.endOutgoing(...args)),
    releaseOutgoing: (...args) => ended(store.releaseOutgoing(...args)),
  });
  const core = await startAnnouncing({ ops: { channel, calls: [], waiting: new Set() } }, { clock, wrapStore: spied });
  return {
    ...core,
    receiver,
    /** Resolves when a number of attempts have ended. */
    ended: async (count: number): Promise<void> => {
      await new Promise<void>((resolve) => {
        look = () => ends >= count && resolve();
        look();
      });
      await clock.settle();
    },
    [Symbol.asyncDispose]: async () => {
      await core[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

for (const kind of ["webhook", "slack"] as const) {
  it(`delivers by ${kind} eventually, whatever the receiver did before`, async () => {
    const busy = answer(429, { "retry-after": "120" });
    await using core = await startDelivering(kind, [answer(500), reset, busy, answer(200)]);
    const { deliveryId } = await core.announce({ text: "Three alerts." });
    for (const [n, wait] of [5_000, 10_000, 120_000].entries()) {
      await core.ended(n + 1);
      expect(core.receiver.requests).toHaveLength(n + 1);
      await core.clock.block(wait);
    }
    await core.ended(4);
    expect(await core.told({ deliveryId })).toMatchObject([
      { name: "announcement.retried", detail: { attempt: 1, status: 500 } },
      { name: "announcement.retried", detail: { attempt: 2, reason: "it closed the connection early" } },
      { name: "announcement.retried", detail: { attempt: 3, status: 429, retry_in_ms: 120_000 } },
      { name: "announcement.delivered", detail: { attempt: 4, status: 200 } },
    ]);
    const bodies = new Set(core.receiver.requests.map(({ body }) => String(body)));
    expect(bodies.size).toBe(1);
    expect([...bodies][0]).toContain("Three alerts.");
    expect(new Set(core.receiver.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  });
}
