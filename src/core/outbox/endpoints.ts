import type { Outcome } from "#channels/channel.ts";
import type { CoreParts } from "#core/parts.ts";
import type { HealthPart, Outgoing, Store } from "#store/store.ts";
import { delayAfter, GIVE_UP_MS, pauseOf } from "./endings.ts";

/** The maximum number of messages that are sent to an endpoint at once. After a failed attempt it is `AFTER_FAILURE`. */
export const MOST_OF_ENDPOINT = 4;
const AFTER_FAILURE = 1;
/** The time between two checks for messages that have waited too long for a stopped endpoint. */
const STOPPED_CHECK_MS = 600_000;

/** The beginning of the name of an endpoint's part of the health. */
export const NOTIFY_PART = "notify.";

export type Endpoint = Outgoing["endpoint"];
type Failure = Exclude<Outcome, { kind: "delivered" }>;
/** `inARow`: the number of consecutive failures; concurrent attempts count as one. `through`: the last attempt that had started when this failure was counted. */
type Failing = Failure & { pausedUntil: number; inARow: number; through: number };
type Claims = Pick<Parameters<Store["claimOutgoing"]>[0], "free" | "before">;

/** The state of the endpoints in this process. An endpoint with failed attempts does not delay the messages of another. */
export function createEndpoints({ store, settings, clock, events }: CoreParts) {
  /** The endpoints whose last attempt failed. */
  const failing = new Map<Endpoint, Failing>();
  /** The endpoints of notifications that answered 410, until the configuration changes. */
  const stopped = new Map<Endpoint, string>();
  /** The number of attempts started, in all and before the last configuration change. */
  let begun = 0;
  let begunBefore = 0;

  const names = (): Endpoint[] => [
    ...[...settings().channels.keys()].map((name) => `channel:${name}` as const),
    ...[...settings().notify.keys()].map((name) => `notify:${name}` as const),
  ];
  /** True if the endpoint did not answer. A stopping gateway does not wait for it. */
  const isDead = (endpoint: Endpoint) => failing.has(endpoint) && failing.get(endpoint)?.code === undefined;
  const pausedFor = (endpoint: Endpoint): number => (failing.get(endpoint)?.pausedUntil ?? 0) - clock.monotonic();
  const placesOf = (endpoint: Endpoint, isRunning: boolean): number => {
    if (stopped.has(endpoint) || !failing.has(endpoint)) return MOST_OF_ENDPOINT;
    return pausedFor(endpoint) > 0 || (!isRunning && isDead(endpoint)) ? 0 : AFTER_FAILURE;
  };

  /** Reports an endpoint of notifications that stops, or begins to fail. */
  const report = (name: string, { kind, reason }: Failure, last: Failing | undefined): void => {
    const endpoint = `notify:${name}` as const;
    if (kind === "failed" && !last) events.notifyFailing({ endpoint: name, reason });
    if (kind === "failed" || stopped.has(endpoint)) return;
    stopped.set(endpoint, reason);
    events.notifyStopped({ endpoint: name, reason });
  };

  return {
    isDead,
    /** The messages that can be claimed, besides those that are being sent. Of a stopped endpoint, only those that have waited for a day. */
    claims(sending: readonly Endpoint[], isRunning: boolean): Claims {
      const free: Record<string, number> = {};
      for (const endpoint of names()) free[endpoint] = placesOf(endpoint, isRunning);
      for (const endpoint of sending) if (endpoint in free) free[endpoint] = (free[endpoint] ?? 0) - 1;
      const oldest = clock.now() - GIVE_UP_MS;
      return { free, before: Object.fromEntries([...stopped.keys()].map((endpoint) => [endpoint, oldest])) };
    },
    /** The time until messages can be claimed because a pause ends or a stopped endpoint is checked. */
    nextInMs(): number {
      const pauses = [...failing.keys()].map(pausedFor).filter((ms) => ms > 0);
      return Math.min(...pauses, stopped.size > 0 ? STOPPED_CHECK_MS : Number.POSITIVE_INFINITY);
    },
    /** The number of an attempt that begins. */
    begin: (): number => ++begun,
    /**
     * Records the outcome of an attempt. Returns the pause of the endpoint; undefined for an attempt from before a change of the configuration, which
     * says nothing about the endpoint. A receiver that refuses only this message works. Endpoints of notifications get longer pauses with each failure, so that a dead endpoint gets few attempts.
     */
    tried(endpoint: Endpoint, outcome: Outcome, attempt: number): number | undefined {
      if (attempt <= begunBefore) return undefined;
      if (outcome.kind === "delivered" || (outcome.kind === "refused" && outcome.isOfMessage)) {
        failing.delete(endpoint);
        return 0;
      }
      const last = failing.get(endpoint);
      const isNotify = endpoint.startsWith("notify:");
      const isSame = last !== undefined && attempt <= last.through;
      const inARow = isSame ? last.inARow : (last?.inARow ?? 0) + 1;
      const pause = isNotify && !isSame ? delayAfter(inARow - 1) : 0;
      const pausedUntil = Math.max(
        isSame ? last.pausedUntil : 0,
        clock.monotonic() + Math.max(pause, pauseOf(outcome)),
      );
      failing.set(endpoint, { ...outcome, pausedUntil, inARow, through: isSame ? last.through : begun });
      if (isNotify) report(nameOf(endpoint), outcome, last);
      return pausedFor(endpoint);
    },
    /** Ends the pause of an endpoint. */
    endPause(endpoint: Endpoint): void {
      const last = failing.get(endpoint);
      if (last) last.pausedUntil = 0;
    },
    /** Why the endpoint is stopped; undefined if it is not. */
    stopReason: (endpoint: Endpoint): string | undefined => stopped.get(endpoint),
    /** The stopped endpoints of notifications. */
    stopped: (): string[] => [...stopped.keys()].map(nameOf),
    /** Applies changed endpoints: pauses end, stopped ones start again, and each is tried at once. */
    reconfigured(): void {
      stopped.clear();
      begunBefore = begun;
      const configured = new Set(names());
      for (const [endpoint, last] of failing) {
        if (configured.has(endpoint)) Object.assign(last, { pausedUntil: 0, inARow: 0 });
        else failing.delete(endpoint);
      }
    },
    /** The health of each endpoint. */
    health(): HealthPart[] {
      const { announcements, notifications } = store.stats();
      return names().map((endpoint) => {
        const isChannel = endpoint.startsWith("channel:");
        const key = nameOf(endpoint);
        const name = isChannel ? `channels.${key}` : NOTIFY_PART + key;
        const count = isChannel ? announcements : (notifications[key] ?? 0);
        const isFull = !isChannel && count >= settings().policy.notifications;
        const last = failing.get(endpoint);
        const stopReason = stopped.get(endpoint);
        if (!last && stopReason === undefined && !isFull) return { name, status: "ok", detail: null };
        const said = [
          stopReason !== undefined
            ? `Stopped: the receiver answered ${stopReason}.`
            : last && `Last delivery failed: ${last.reason}.`,
          isChannel ? waits(count, "reply", "replies") : waits(count, "notification", "notifications"),
          isFull && "This is the maximum in limits.notifications: with each further one, the oldest fails.",
        ];
        return { name, status: "degraded", detail: said.filter(Boolean).join(" ") };
      });
    },
  };
}

/** The key of the endpoint in the configuration. */
export function nameOf(endpoint: Endpoint): string {
  return endpoint.slice(endpoint.indexOf(":") + 1);
}

function waits(count: number, one: string, several: string): string {
  return count === 0 ? "" : `${count} ${count === 1 ? `${one} is` : `${several} are`} waiting.`;
}
