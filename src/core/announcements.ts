import type { Outcome } from "#channels/channel.ts";
import type { CoreParts } from "#core/parts.ts";
import { keepTrying, leaseOfClaims, Worker } from "#core/worker.ts";
import { GatewayError } from "#kit/errors.ts";
import { isLoop, loopWords } from "#kit/hops.ts";
import { NO_USAGE } from "#kit/usages.ts";
import type {
  Announcement,
  ClaimedAnnouncement,
  DeliveryStep,
  HealthPart,
  Turn,
  TurnAnnouncement,
  TurnOrder,
} from "#store/store.ts";

/** The most announcements at a time, in total and for a channel: a slow channel leaves places for the others. */
const MOST = 64;
const MOST_OF_CHANNEL = 4;
/** The time that a stopping gateway waits until the store has taken unfinished announcements back. */
const GIVE_BACK_MS = 1_000;
/** An announcement fails after this time. */
const GIVE_UP_MS = 86_400_000;
const FIRST_DELAY_MS = 5_000;
const LONGEST_DELAY_MS = 3_600_000;
/** Longer than a day, in case the wall clock is set back. */
const MOST_ATTEMPTS = 100;

/**
 * Sends replies to their channels, each at least once: an unfinished announcement is claimed again when its lease ends. Failed announcements
 * are retried for a day. Neither the turn nor another channel waits for them.
 */
export function createAnnouncements(parts: CoreParts) {
  const { store, clock, events, node, settings } = parts;
  const lease = leaseOfClaims<Sending>(store);
  /** The channels whose last attempt failed, with the outcome and the time until which they asked for a pause. */
  const failing = new Map<string, Exclude<Outcome, { kind: "delivered" }> & { pausedUntil: number }>();

  const channelsUnderWay = (): string[] => worker.all().map(({ announcement }) => announcement.channel);
  /** True if the channel did not answer. A stopping gateway does not wait for it. */
  const isDead = (channel: string) => failing.has(channel) && failing.get(channel)?.code === undefined;
  const pausedFor = (channel: string): number => (failing.get(channel)?.pausedUntil ?? 0) - clock.monotonic();

  const claim = async () => {
    const underWay = channelsUnderWay();
    const freeOf = (channel: string): number =>
      pausedFor(channel) > 0 || (worker.state() !== "running" && isDead(channel))
        ? 0
        : MOST_OF_CHANNEL - underWay.filter((one) => one === channel).length;
    const request = { node, leaseMs: lease.ms, limit: MOST - underWay.length, freeOf };
    const { announcements, nextDueInMs = Number.POSITIVE_INFINITY } = await store.claimAnnouncements(request);
    // The pause of another channel may end earlier.
    const waits = [...failing.keys()].map(pausedFor).filter((ms) => ms > 0);
    const works = announcements.map((claimed) => ({ ...claimed, stop: new AbortController() }));
    return { works, nextDueInMs: Math.min(nextDueInMs, ...waits) };
  };

  const attempt = async (announcement: Announcement, signal: AbortSignal): Promise<AnnouncementEnd> => {
    const { turnId, sessionId, agent, channel: name, deliveryId, hops } = announcement;
    if (signal.aborted) return RETURNED;
    const channel = settings().channels.get(name);
    if (!channel) return failed("the channel was removed from the configuration");
    if (isLoop(hops)) return failed(loopWords(hops));
    const turn = await store.getTurn(turnId);
    if (turn?.reply === undefined) return failed("its turn is no longer stored");
    const { model, reply, usage = NO_USAGE, createdAt, endedAt = createdAt } = turn;
    const what = { turnId, sessionId, agent, channel: name, deliveryId, hops, model, reply, usage, createdAt, endedAt };
    const outcome = await channel.announce(what, signal);
    if (signal.aborted && outcome.kind !== "delivered") return RETURNED;
    if (outcome.kind === "delivered") failing.delete(name);
    else failing.set(name, { ...outcome, pausedUntil: clock.monotonic() + pauseOf(outcome) });
    return endOf(outcome, announcement, clock.now());
  };

  const run = async ({ claim, announcement, stop: { signal } }: Sending): Promise<void> => {
    const began = clock.monotonic();
    const end = await attempt(announcement, signal).catch((error: unknown) => {
      // Usually a failure of the store, not of the receiver or the announcement.
      events.unexpectedError({ error, where: "announcements" });
      return { name: "retried", reason: "the gateway failed", retryInMs: delayAfter(announcement.attempts) } as const;
    });
    const step = stepOf(end, announcement, clock.now(), clock.monotonic() - began);
    const { reason } = end;
    const keep = () =>
      end.retryInMs === undefined
        ? store.endAnnouncement(claim, { state: end.name, reason, step })
        : store.releaseAnnouncement(claim, { delayMs: end.retryInMs, state: STATES[end.name], reason, step });
    // If the end cannot be stored, the announcement is sent again when its lease ends.
    const isOurs = await keepTrying(parts, "endAnnouncement", keep, () => !signal.aborted).catch(() => false);
    // Its session was deleted, or its lease ended and another node has it.
    if (!isOurs) return;
    const { turnId, channel, attempts } = announcement;
    events.announced({ outcome: end.name, channel, turnId, attempt: attempts + 1, reason });
  };

  const worker: Worker<Sending> = new Worker<Sending>({
    store,
    clock,
    events,
    name: "announcements",
    keyOf: ({ claim }) => claim.turnId,
    run,
    giveBack: ({ stop }) => stop.abort(),
    ended: () => worker.wake(),
    queue: { operation: "claimAnnouncements", hasRoom: () => worker.all().length < MOST, claim },
    lease,
  });

  const drain = async (ms: number): Promise<void> => {
    await worker.drain({ ms, isDone: () => channelsUnderWay().every(isDead), lastMs: GIVE_BACK_MS });
    const left = store.stats().announcements;
    if (left > 0) events.announcementsLeft({ left, stored: store.durable });
  };
  let drained: Promise<void> | undefined;

  return {
    wake: (): void => worker.wake(),
    /**
     * Sends the reply of a turn to its channel again. Refuses a request that passed through too many announcements, and a channel that was
     * removed from the configuration, because no attempt could succeed.
     */
    async announceAgain(turnId: string, by: string, hops: number): Promise<Turn> {
      const last = (await store.getTurn(turnId))?.announcement;
      if (last) checkAgain(settings(), last, hops);
      return store.announceAgain(turnId, { now: clock.now(), by, hops });
    },
    /** Applies changed channels: pauses end, and every channel is tried at once. */
    reconfigured(): void {
      for (const [channel, last] of failing) {
        if (settings().channels.has(channel)) last.pausedUntil = 0;
        else failing.delete(channel);
      }
      worker.wake();
    },
    /** The health of each channel. */
    health(): HealthPart[] {
      const { announcements } = store.stats();
      const replies = announcements === 1 ? "reply is" : "replies are";
      const waiting = announcements === 0 ? "" : ` ${announcements} ${replies} waiting.`;
      return [...settings().channels.keys()].map((channel) => {
        const name = `channels.${channel}`;
        const last = failing.get(channel);
        if (!last) return { name, status: "ok", detail: null };
        return { name, status: "degraded", detail: `Last delivery failed: ${last.reason}.${waiting}` };
      });
    },
    /** Waits at most `ms` for running announcements, and with a store in memory for all that can be sent now. Then gives the rest back. */
    drain: (ms: number): Promise<void> => (drained ??= drain(ms)),
  };
}

export type Announcements = ReturnType<typeof createAnnouncements>;

function checkAgain({ channels }: Pick<AnnounceSettings, "channels">, last: TurnAnnouncement, hops: number): void {
  const most = Math.max(hops, last.hops);
  if (isLoop(most))
    throw new GatewayError("reply-not-announceable", `The reply is not sent again: ${loopWords(most)}.`);
  const { channel } = last;
  if (!channels.has(channel))
    throw new GatewayError("reply-not-announceable", `The channel ${channel} was removed from the configuration.`);
}

/** An announcement that is being sent. */
type Sending = ClaimedAnnouncement & { stop: AbortController };

/** The result of an attempt. `returned`: the gateway stopped before there was an answer. */
type AnnouncementEnd = { code?: number | undefined; reason?: string } & (
  | { name: "delivered" | "failed"; retryInMs?: undefined }
  | { name: "retried" | "returned"; retryInMs: number }
);

/** The state of an announcement after its release. A returned attempt does not change the state. */
const STATES = { retried: "retrying", returned: undefined } as const;

function failed(reason: string, code?: number): AnnouncementEnd {
  return { name: "failed", code, reason };
}

/** The attempt continues after the next start, or on another gateway. */
const RETURNED: AnnouncementEnd = { name: "returned", reason: "the gateway stopped", retryInMs: 0 };

/** The result of an attempt, from the outcome that the channel reported. */
function endOf(outcome: Outcome, { createdAt, attempts }: Announcement, now: number): AnnouncementEnd {
  const { code } = outcome;
  if (outcome.kind === "delivered") return { name: "delivered", code };
  const { reason } = outcome;
  if (outcome.kind === "refused") return failed(reason, code);
  const left = createdAt + GIVE_UP_MS - now;
  if (left <= 0 || attempts + 1 >= MOST_ATTEMPTS) return failed(`${reason}; retried for one day`, code);
  const retryInMs = Math.min(Math.max(delayAfter(attempts), pauseOf(outcome)), left);
  return { name: "retried", code, reason, retryInMs };
}

/** The pause that the channel asked for, up to the limit. */
function pauseOf(outcome: Outcome): number {
  return outcome.kind === "failed" ? Math.min(outcome.retryAfterMs ?? 0, LONGEST_DELAY_MS) : 0;
}

/** Doubles up to an hour. The jitter spreads announcements that failed together. */
function delayAfter(attempts: number): number {
  return Math.round(Math.min(FIRST_DELAY_MS * 2 ** attempts, LONGEST_DELAY_MS) * (0.5 + Math.random() / 2));
}

/** The step of the delivery's timeline for an attempt. */
function stepOf(end: AnnouncementEnd, { channel, attempts }: Announcement, at: number, ms: number): DeliveryStep {
  const { name, code: status, reason, retryInMs: retry_in_ms } = end;
  const detail = { channel, attempt: attempts + 1, status, reason, retry_in_ms, ms: Math.round(ms) };
  return { at, name: `announcement.${name}`, detail: JSON.stringify(detail) };
}

/** The channels of the configuration. */
type AnnounceSettings = { channels: { has(name: string): boolean }; announceTo: string | undefined };

/**
 * The announcement of a turn's reply: to the configured channel with the name of its label, else to the default channel. Undefined if the turn
 * did not ask for one, or neither channel exists: then only WebSocket subscribers receive the reply.
 */
export function announceOf(
  { channels, announceTo }: AnnounceSettings,
  request: { delivery: "none" | "announce" | undefined; channel: string | undefined; hops: number },
): TurnOrder["announce"] {
  if (request.delivery !== "announce") return undefined;
  const channel = request.channel !== undefined && channels.has(request.channel) ? request.channel : announceTo;
  return channel === undefined ? undefined : { channel, hops: request.hops };
}
