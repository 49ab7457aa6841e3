import { describe, expect, test } from "vitest";
import { showDelivery } from "#core/recorder/deliveries.ts";
import type { DeliveryFollower } from "#core/recorder/delivery-feed.ts";
import { pushDeliveries } from "#wire/socket/delivery-pushes.ts";
import { createPushFrames } from "#wire/socket/pushes.ts";
import { hookOf } from "../../stores/deliveries.ts";

describe("the pushes of deliveries", () => {
  test("skip a slow reader, which gets `stream.reset` when it has room again", async () => {
    let tell: DeliveryFollower["tell"] = () => {};
    const sent: string[] = [];
    let holds = 0;
    const sink = {
      isOpen: true,
      isFull: false,
      hasRoom: true,
      push: (frame: Buffer) => void sent.push(String(frame)),
      hold: () => void holds++,
      cut() {},
    };
    const follow = (one: DeliveryFollower) => {
      tell = one.tell;
      return () => {};
    };
    const frames = createPushFrames({ sessions: "s", gateway: "g" }, (json) => json);
    const reader = pushDeliveries({ follow }, frames, sink, () => 7);
    const news = [
      {
        name: "delivery.recorded",
        at: 0,
        delivery: showDelivery(
          {
            ...hookOf("dlv_01M7YN0XEK2C9V6S4HT8QZ3RWD", { answer: "unmatched" }),
            turnId: undefined,
            eventId: undefined,
            sessionId: undefined,
            messageId: undefined,
            agent: undefined,
            outcome: "unmatched",
            preview: undefined,
            replyPreview: undefined,
            endedAt: undefined,
            tokens: undefined,
            announcement: undefined,
            error: undefined,
          },
          (text) => text,
        ),
      },
    ] as const;
    const pushedOf = async (act: () => void) => {
      act();
      await new Promise((resolve) => setImmediate(resolve));
      return sent.splice(0).map((frame) => /"method":"([^"]+)"/.exec(frame)?.[1]);
    };
    expect(await pushedOf(() => tell(news))).toEqual([]); // Nothing before the answer.
    reader.start(false);
    expect(await pushedOf(() => tell(news))).toEqual(["delivery.recorded"]);
    Object.assign(sink, { isFull: true, hasRoom: false });
    expect(holds).toBe(0);
    expect(await pushedOf(() => tell(news))).toEqual([]);
    Object.assign(sink, { isFull: false });
    expect(await pushedOf(() => tell(news))).toEqual([]); // It would not know what it missed.
    expect(holds).toBe(2);
    Object.assign(sink, { hasRoom: true });
    expect(await pushedOf(reader.resume)).toEqual(["stream.reset"]);
    expect(await pushedOf(() => tell(news))).toEqual(["delivery.recorded"]);
    reader.stop();
    expect(await pushedOf(() => tell(news))).toEqual([]);
  });
});
