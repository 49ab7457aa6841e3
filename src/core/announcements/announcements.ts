import { setMaxListeners } from "node:events";
import type { Channel, Outcome } from "#channels/channel.ts";
import type { Clock } from "#kit/clock.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import { NO_USAGE } from "#kit/usages.ts";
import type { Events } from "#observe/events.ts";
import type { Announcement, ClaimedAnnouncement, HealthPart, Store } from "#store/store.ts";
import { type AnnouncementEnd, endOf, givenUp, holdOf, RETURNED, stepOf, triedLater } from "./announcement-ends.ts";

/** A channel's call is over sooner (channels/channel.ts), so that no lease is extended. */
const LEASE_MS = 60_000;
/** At once, in all and for one channel: one that is slow, or dead, leaves places for the others. */
const MOST = 64;
const MOST_OF_CHANNEL = 4;
const STORE_TRIES = 5;
/** How long a gateway that stops waits for the store to take back what was under way. */
const GIVE_BACK_MS = 1_000;

export type Channels = ReadonlyMap<string, Channel>;

/**
 * Sends replies to their channels, each at least once: a claimed announcement that is not ended comes back when its lease ends. A
 * channel that fails is asked again for a day, and neither the turn nor another channel waits for it.
 */
export const createAnnouncements = (parts: {
  store: Store;
  clock: Clock;
  events: Events;
  node: string;
  channels: () => Channels;
}) => {
  const { store, clock, events, node, channels } = parts;
  const stopping = new AbortController();
  setMaxListeners(MOST, stopping.signal);
  const underWay = new Map<string, number>();
  /** Channels that asked to be left alone, and until when. */
  const held = new Map<string, number>();
  /** Channels whose last attempt failed, and how. */
  const failing = new Map<string, Exclude<Outcome, { kind: "delivered" }>>();
  let state: "running" | "draining" | "stopped" = "running";
  let taken = 0;
  let wanted = false;
  let pumping = false;
  let stopDue: (() => void) | undefined;
  /** Where a stop that waits looks whether it still has to. */
  let look = () => {};

  const mayClaim = () => state === "running" || (state === "draining" && !store.durable);
  const isHeld = (channel: string) => (held.get(channel) ?? 0) > clock.monotonic();
  /** Nobody answered there. A stop waits for no such channel. */
  const isDead = (channel: string) => failing.has(channel) && failing.get(channel)?.code === undefined;
  const freeOf = (channel: string): number =>
    isHeld(channel) || (state !== "running" && isDead(channel)) ? 0 : MOST_OF_CHANNEL - (underWay.get(channel) ?? 0);

  const wake = () => {
    wanted = true;
    if (pumping) return;
    pumping = true;
    queueMicrotask(pump);
  };

  const pump = async (): Promise<void> => {
    let again: number | undefined;
    try {
      while (wanted && mayClaim() && taken < MOST) {
        wanted = false;
        const request = { node, leaseMs: LEASE_MS, limit: MOST - taken, freeOf };
        const { announcements, nextDueInMs } = await store.claimAnnouncements(request);
        for (const claimed of announcements) begin(claimed);
        again = Math.min(nextDueInMs ?? Number.POSITIVE_INFINITY, heldFor());
      }
    } catch (error) {
      events.storeFailed({ operation: "claimAnnouncements", error });
      again = 1_000;
    } finally {
      pumping = false;
      if (again !== undefined) askAgainIn(again);
      look();
    }
  };
  const askAgainIn = (ms: number) => {
    stopDue?.();
    stopDue = ms === Number.POSITIVE_INFINITY || !mayClaim() ? undefined : clock.after(ms, wake);
  };
  /** How long until the next channel may be asked that wanted to be left alone. */
  const heldFor = (): number => {
    let soonest = Number.POSITIVE_INFINITY;
    for (const [channel, until] of held) {
      const left = until - clock.monotonic();
      if (left > 0) soonest = Math.min(soonest, left);
      else held.delete(channel);
    }
    return soonest;
  };

  const begin = (claimed: ClaimedAnnouncement): void => {
    const { channel } = claimed.announcement;
    taken++;
    underWay.set(channel, (underWay.get(channel) ?? 0) + 1);
    run(claimed)
      .catch((error: unknown) => events.unexpectedError({ error, where: "announcements" }))
      .finally(() => {
        taken--;
        underWay.set(channel, (underWay.get(channel) as number) - 1);
        if (underWay.get(channel) === 0) underWay.delete(channel);
        wake();
      });
  };

  const attempt = async (announcement: Announcement): Promise<AnnouncementEnd> => {
    const { turnId, sessionId, agent, channel: name, deliveryId, hops } = announcement;
    if (stopping.signal.aborted) return RETURNED;
    const channel = channels().get(name);
    if (!channel) return givenUp("the channel left the configuration");
    if (isLoop(hops)) return givenUp(loopWords(hops));
    const turn = await store.getTurn(turnId);
    if (turn?.reply === undefined) return givenUp("its turn is not kept any more");
    const { model, reply, usage = NO_USAGE, createdAt, endedAt = createdAt } = turn;
    const what = { turnId, sessionId, agent, channel: name, deliveryId, hops, model, reply, usage, createdAt, endedAt };
    const outcome = await channel.announce(what, stopping.signal);
    if (stopping.signal.aborted && outcome.kind !== "delivered") return RETURNED;
    note(name, outcome);
    return endOf(outcome, announcement, clock.now());
  };

  /** Remembers how a channel is. */
  const note = (channel: string, outcome: Outcome): void => {
    if (outcome.kind === "delivered") failing.delete(channel);
    else failing.set(channel, outcome);
    const holdMs = holdOf(outcome);
    if (holdMs > 0) held.set(channel, clock.monotonic() + holdMs);
  };

  const run = async ({ claim, announcement }: ClaimedAnnouncement): Promise<void> => {
    const began = clock.monotonic();
    const end = await attempt(announcement).catch((error: unknown) => {
      // The store, mostly: neither the receiver nor the announcement has done anything wrong.
      events.unexpectedError({ error, where: "announcements" });
      return triedLater("the gateway failed", announcement);
    });
    const step = stepOf(end, announcement, clock.now(), clock.monotonic() - began);
    const isOurs = await keep(() => store.endAnnouncement(claim, { retryInMs: end.retryInMs, step }));
    // Its session was deleted, or its lease ended and another node has it.
    if (!isOurs) return;
    const { turnId, channel, attempts } = announcement;
    events.announced({ outcome: end.name, channel, turnId, attempt: attempts + 1, reason: end.reason });
  };

  /** Asks a store that fails again, a few times. What it never hears of is sent once more when the lease ends. */
  const keep = async (end: () => Promise<boolean>): Promise<boolean> => {
    for (let tries = 1; ; tries++) {
      try {
        return await end();
      } catch (error) {
        events.storeFailed({ operation: "endAnnouncement", error });
        if (tries === STORE_TRIES || stopping.signal.aborted) return false;
        await new Promise<void>((resolve) => clock.after(200 * 2 ** tries, resolve));
      }
    }
  };

  const isIdle = () => taken === 0 && !pumping;
  const isWorthWaiting = () => pumping || [...underWay.keys()].some((channel) => !isDead(channel));
  const waitWhile = (isSo: () => boolean, ms: number) =>
    new Promise<void>((resolve) => {
      const stopWaiting = clock.after(ms, resolve);
      look = () => {
        if (isSo()) return;
        stopWaiting();
        resolve();
      };
      look();
    });

  const drain = async (ms: number): Promise<void> => {
    state = "draining";
    if (ms > 0) await waitWhile(isWorthWaiting, ms);
    state = "stopped";
    stopDue?.();
    stopping.abort();
    // Not for ever: the store may not answer.
    await waitWhile(() => !isIdle(), GIVE_BACK_MS);
    const left = store.stats().announcements;
    if (left > 0) events.announcementsLeft({ left, kept: store.durable });
  };
  let drained: Promise<void> | undefined;

  return {
    wake,
    /** The channels are others now: each is asked at once. */
    reconfigured(): void {
      held.clear();
      for (const channel of failing.keys()) if (!channels().has(channel)) failing.delete(channel);
      wake();
    },
    /** How each channel is. */
    health(): HealthPart[] {
      const { announcements } = store.stats();
      return [...channels().keys()].map((channel) => {
        const name = `channels.${channel}`;
        const last = failing.get(channel);
        if (!last) return { name, status: "ok", detail: null };
        const detail = `Its last announcement failed: ${last.reason}. In all ${announcements} wait.`;
        return { name, status: "degraded", detail };
      });
    },
    /** Waits at most `ms` for what is under way, and with a store that forgets for all that can be sent now. Then it gives the rest back. */
    drain: (ms: number): Promise<void> => (drained ??= drain(ms)),
  };
};

export type Announcements = ReturnType<typeof createAnnouncements>;
