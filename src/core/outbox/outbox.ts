import type { Outcome } from "#channels/channel.ts";
import type { CoreParts } from "#core/parts.ts";
import { keepTrying, leaseOfClaims, Worker } from "#core/worker.ts";
import type { ClaimedMessage, HealthPart, Outgoing, Turn } from "#store/store.ts";
import { checkAgain, sendReply } from "./announcements.ts";
import {
  type AttemptEnd,
  brokenAttempt,
  endOf,
  failed,
  GIVE_UP_MS,
  pauseOf,
  RETURNED,
  STATES,
  stepOf,
} from "./endings.ts";

/** The maximum number of messages that are sent to an endpoint at once. After a failed attempt it is `AFTER_FAILURE`. */
const MOST_OF_ENDPOINT = 4;
const AFTER_FAILURE = 1;
/** The time after the last retry in which only gateways with the endpoint claim a message. */
const LAST_ATTEMPT_MS = 3_600_000;
/** The time that a stopping gateway waits until the store has taken unfinished messages back. */
const GIVE_BACK_MS = 1_000;

type Endpoint = Outgoing["endpoint"];
/** A message that is being sent. */
type Sending = ClaimedMessage & { stop: AbortController };

/**
 * Sends messages to their endpoints, each at least once: an unfinished message is claimed again when its lease ends. Failed messages are retried
 * for a day. Neither the turn nor another endpoint waits for them.
 */
export function createOutbox(parts: CoreParts) {
  const { store, clock, events, node, settings } = parts;
  const lease = leaseOfClaims<Sending>(store);
  /** The endpoints whose last attempt failed, with the outcome and the time until which they asked for a pause. */
  const failing = new Map<Endpoint, Exclude<Outcome, { kind: "delivered" }> & { pausedUntil: number }>();

  const endpoints = (): Endpoint[] => [...settings().channels.keys()].map((name) => `channel:${name}` as const);
  /** True if the endpoint did not answer. A stopping gateway does not wait for it. */
  const isDead = (endpoint: Endpoint) => failing.has(endpoint) && failing.get(endpoint)?.code === undefined;
  const pausedFor = (endpoint: Endpoint): number => (failing.get(endpoint)?.pausedUntil ?? 0) - clock.monotonic();
  const placesOf = (endpoint: Endpoint): number => {
    if (!failing.has(endpoint)) return MOST_OF_ENDPOINT;
    const isLeftAlone = pausedFor(endpoint) > 0 || (worker.state() !== "running" && isDead(endpoint));
    return isLeftAlone ? 0 : AFTER_FAILURE;
  };

  const claim = async () => {
    const free: Record<string, number> = {};
    for (const endpoint of endpoints()) free[endpoint] = placesOf(endpoint);
    for (const { message } of worker.all())
      if (message.endpoint in free) free[message.endpoint] = (free[message.endpoint] ?? 0) - 1;
    const request = { node, leaseMs: lease.ms, free, others: othersOf(parts) };
    const { claimed, nextDueInMs = Number.POSITIVE_INFINITY } = await store.claimOutgoing(request);
    // The pause of another endpoint may end earlier.
    const waits = [...failing.keys()].map(pausedFor).filter((ms) => ms > 0);
    const works = claimed.map((one) => ({ ...one, stop: new AbortController() }));
    return { works, nextDueInMs: Math.min(nextDueInMs, ...waits) };
  };

  const attempt = async (message: Outgoing, signal: AbortSignal): Promise<AttemptEnd> => {
    if (signal.aborted) return RETURNED;
    const outcome = await sendReply(parts, message, signal);
    if (outcome.kind === "unsendable") return failed(outcome.reason);
    if (signal.aborted && outcome.kind !== "delivered") return RETURNED;
    const { endpoint } = message;
    if (outcome.kind === "delivered") failing.delete(endpoint);
    else failing.set(endpoint, { ...outcome, pausedUntil: clock.monotonic() + pauseOf(outcome) });
    return endOf(outcome, message, clock.now());
  };

  const run = async ({ claim, message, stop: { signal } }: Sending): Promise<void> => {
    const began = clock.monotonic();
    const end = await attempt(message, signal).catch((error: unknown) => {
      // Usually a failure of the store, not of the receiver or the message.
      events.unexpectedError({ error, where: "outbox" });
      return brokenAttempt(message);
    });
    const step = stepOf(end, message, clock.now(), clock.monotonic() - began);
    const { reason } = end;
    const keep = () =>
      end.retryInMs === undefined
        ? store.endOutgoing(claim, { state: end.name, reason, step })
        : store.releaseOutgoing(claim, { delayMs: end.retryInMs, state: STATES[end.name], reason, step });
    // If the end cannot be stored, the message is sent again when its lease ends.
    const isOurs = await keepTrying(parts, "endOutgoing", keep, () => !signal.aborted).catch(() => false);
    // Its session was deleted, or its lease ended and another node has it.
    if (!isOurs) return;
    const { id: turnId, channel, attempts } = message;
    events.announced({ outcome: end.name, channel, turnId, attempt: attempts + 1, reason });
  };

  const worker: Worker<Sending> = new Worker<Sending>({
    store,
    clock,
    events,
    name: "outbox",
    keyOf: ({ claim }) => claim.id,
    run,
    giveBack: ({ stop }) => stop.abort(),
    ended: () => worker.wake(),
    queue: { operation: "claimOutgoing", hasRoom: () => true, claim },
    lease,
  });

  const drain = async (ms: number): Promise<void> => {
    const isDone = () => worker.all().every(({ message }) => isDead(message.endpoint));
    await worker.drain({ ms, isDone, lastMs: GIVE_BACK_MS });
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
    /** Applies changed endpoints: pauses end, and every endpoint is tried at once. */
    reconfigured(): void {
      const configured = new Set(endpoints());
      for (const [endpoint, last] of failing) {
        if (configured.has(endpoint)) last.pausedUntil = 0;
        else failing.delete(endpoint);
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
        const last = failing.get(`channel:${channel}`);
        if (!last) return { name, status: "ok", detail: null };
        return { name, status: "degraded", detail: `Last delivery failed: ${last.reason}.${waiting}` };
      });
    },
    /** Waits at most `ms` for messages that are being sent, and with a memory store also for all messages that can be sent now. Then returns the others to the queue. */
    drain: (ms: number): Promise<void> => (drained ??= drain(ms)),
  };
}

export type Outbox = ReturnType<typeof createOutbox>;

/** A message for a removed endpoint fails at once. If several gateways share the store, another one may still have the endpoint. */
function othersOf({ store, clock }: CoreParts) {
  const before = store.shared ? clock.now() - GIVE_UP_MS - LAST_ATTEMPT_MS : Number.POSITIVE_INFINITY;
  return { free: MOST_OF_ENDPOINT, before };
}
