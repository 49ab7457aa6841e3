import type { CoreParts } from "#core/parts.ts";
import { keepTrying, leaseOfClaims, Worker } from "#core/worker.ts";
import type { Events } from "#observe/events.ts";
import type { ClaimedMessage, Outgoing, Turn } from "#store/store.ts";
import { checkAgain, sendReply } from "./announcements.ts";
import {
  type AttemptEnd,
  brokenAttempt,
  endOf,
  failed,
  GIVE_UP_MS,
  isReply,
  pauseOf,
  RETURNED,
  STATES,
  stepOf,
  unsent,
  withoutRequest,
} from "./endings.ts";
import { createEndpoints, MOST_OF_ENDPOINT, nameOf } from "./endpoints.ts";
import { type EndpointTest, sendNotification, testEndpoint } from "./notifications.ts";

/** The time after the last retry in which only gateways with the endpoint claim a message. */
const LAST_ATTEMPT_MS = 3_600_000;
/** The time that a stopping gateway waits until the store has taken unfinished messages back. */
const GIVE_BACK_MS = 1_000;

/** A message that is being sent. */
type Sending = ClaimedMessage & { stop: AbortController };

/**
 * Sends messages to their endpoints, each at least once: an unfinished message is claimed again when its lease ends. Failed messages are retried
 * for a day. Neither the turn nor another endpoint waits for them.
 */
export function createOutbox(parts: CoreParts) {
  const { store, clock, events, node, settings } = parts;
  const lease = leaseOfClaims<Sending>(store);
  const endpoints = createEndpoints(parts);
  const closing = new AbortController();

  const claim = async () => {
    const sending = worker.all().map(({ message }) => message.endpoint);
    const claims = endpoints.claims(sending, worker.state() === "running");
    const request = { node, leaseMs: lease.ms, ...claims, others: othersOf(parts) };
    const { claimed, nextDueInMs = Number.POSITIVE_INFINITY } = await store.claimOutgoing(request);
    const works = claimed.map((one) => ({ ...one, stop: new AbortController() }));
    return { works, nextDueInMs: Math.min(nextDueInMs, endpoints.nextInMs()) };
  };

  const attempt = async (message: Outgoing, signal: AbortSignal): Promise<AttemptEnd> => {
    const early = signal.aborted ? RETURNED : unsent(message, clock.now(), endpoints.stopReason(message.endpoint));
    if (early) return withoutRequest(early, message);
    const number = endpoints.begin();
    const send = isReply(message) ? sendReply(parts, message, signal) : sendNotification(parts, message, signal);
    const outcome = await send;
    if (outcome.kind === "unsendable") return withoutRequest(failed(outcome.reason), message);
    if (signal.aborted && outcome.kind !== "delivered") return RETURNED;
    const pauseMs = endpoints.tried(message.endpoint, outcome, number);
    // Its endpoint may have another address now.
    if (pauseMs === undefined && outcome.kind === "refused" && !isReply(message))
      return { name: "retried", reason: outcome.reason, code: outcome.code, retryInMs: 0 };
    return endOf(outcome, message, clock.now(), pauseMs ?? pauseOf(outcome));
  };

  const run = async ({ claim, message, stop: { signal } }: Sending): Promise<void> => {
    const began = clock.monotonic();
    const end = await attempt(message, signal).catch((error: unknown) => {
      // Usually a failure of the store, not of the receiver or the message.
      events.unexpectedError({ error, where: "outbox" });
      return brokenAttempt(message);
    });
    const step = stepOf(end, message, clock.now(), clock.monotonic() - began);
    const { reason, code, isUnsent } = end;
    const result = { reason, code, isUnsent, step };
    const keep = () =>
      end.retryInMs === undefined
        ? store.endOutgoing(claim, { state: end.name, ...result })
        : store.releaseOutgoing(claim, { delayMs: end.retryInMs, state: STATES[end.name], ...result });
    // If the end cannot be stored, the message is sent again when its lease ends.
    const isOurs = await keepTrying(parts, "endOutgoing", keep, () => !signal.aborted).catch(() => false);
    // Its session was deleted, or its lease ended and another node has it.
    if (!isOurs) return;
    report(events, message, end);
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
    const isDone = () => worker.all().every(({ message }) => endpoints.isDead(message.endpoint));
    await worker.drain({ ms, isDone, lastMs: GIVE_BACK_MS });
    closing.abort();
    const { announcements: left, notifications } = store.stats();
    if (left > 0) events.announcementsLeft({ left, stored: store.durable });
    const waiting = Object.values(notifications).reduce((sum, count) => sum + count, 0);
    if (waiting > 0) events.notificationsLeft({ left: waiting, stored: store.durable });
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
    /** True for a configured endpoint of notifications. */
    hasEndpoint: (name: string): boolean => settings().notify.has(name),
    /** Sends to a notification endpoint immediately, even during its pause after a failure. */
    tryNow(name: string): void {
      endpoints.endPause(`notify:${name}`);
      worker.wake();
    },
    /** Sends a test event to an endpoint of notifications at once. Undefined if it is not configured. */
    testEndpoint: (name: string): Promise<EndpointTest | undefined> => testEndpoint(parts, name, closing.signal),
    /** The endpoints of notifications that are stopped in this process. */
    stopped: endpoints.stopped,
    /** Applies changed endpoints: pauses end, stopped ones start again, and each is tried at once. */
    reconfigured(): void {
      endpoints.reconfigured();
      worker.wake();
    },
    /** The health of each endpoint. */
    health: endpoints.health,
    /** Waits at most `ms` for messages that are being sent, and with a memory store also for all messages that can be sent now. Then returns the others to the queue. */
    drain: (ms: number): Promise<void> => (drained ??= drain(ms)),
  };
}

export type Outbox = ReturnType<typeof createOutbox>;

function report(events: Events, message: Outgoing, { name: outcome, reason, isUnsent }: AttemptEnd): void {
  const { id, attempts } = message;
  const attempt = attempts + (isUnsent ? 0 : 1);
  if (!isReply(message)) {
    const endpoint = nameOf(message.endpoint);
    events.notified({ outcome, endpoint, notificationId: id, attempt, reason });
  } else if (outcome !== "stopped") {
    events.announced({ outcome, channel: message.channel, turnId: id, attempt, reason });
  }
}

/** A message for a removed endpoint fails at once. If several gateways share the store, another one may still have the endpoint. */
function othersOf({ store, clock }: CoreParts) {
  const before = store.shared ? clock.now() - GIVE_UP_MS - LAST_ATTEMPT_MS : Number.POSITIVE_INFINITY;
  return { free: MOST_OF_ENDPOINT, before };
}
