import type { Outcome } from "#channels/channel.ts";
import type { CoreParts } from "#core/parts.ts";
import type { HealthPart, Outgoing, Store } from "#store/store.ts";
import { GIVE_UP_MS, pauseOf } from "./endings.ts";

/** The maximum number of messages that are sent to an endpoint at once. After a failed attempt it is `AFTER_FAILURE`. */
export const MOST_OF_ENDPOINT = 4;
const AFTER_FAILURE = 1;
/** The time between two checks for messages that have waited too long for a stopped endpoint. */
const STOPPED_CHECK_MS = 600_000;

/** The beginning of the name of an endpoint's part of the health. */
export const NOTIFY_PART = "notify.";

export type Endpoint = Outgoing["endpoint"];
type Failure = Exclude<Outcome, { kind: "delivered" }>;
type Claims = Pick<Parameters<Store["claimOutgoing"]>[0], "free" | "before">;

/** The state of the endpoints in this process. An endpoint with failed attempts does not delay the messages of another. */
export function createEndpoints({ store, settings, clock, events }: CoreParts) {
  /** The endpoints whose last attempt failed, with the outcome and the time until which they asked for a pause. */
  const failing = new Map<Endpoint, Failure & { pausedUntil: number }>();
  /** The endpoints of notifications that answered 410, until the configuration changes. */
  const stopped = new Map<Endpoint, string>();

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
    /** Learns the outcome of an attempt. */
    tried(endpoint: Endpoint, outcome: Outcome): void {
      if (outcome.kind === "delivered") {
        failing.delete(endpoint);
        return;
      }
      failing.set(endpoint, { ...outcome, pausedUntil: clock.monotonic() + pauseOf(outcome) });
      if (outcome.kind !== "refused" || !endpoint.startsWith("notify:") || stopped.has(endpoint)) return;
      stopped.set(endpoint, outcome.reason);
      events.notifyStopped({ endpoint: nameOf(endpoint), reason: outcome.reason });
    },
    /** Why the endpoint is stopped; undefined if it is not. */
    stopReason: (endpoint: Endpoint): string | undefined => stopped.get(endpoint),
    /** The stopped endpoints of notifications. */
    stopped: (): string[] => [...stopped.keys()].map(nameOf),
    /** Applies changed endpoints: pauses end, stopped ones start again, and each is tried at once. */
    reconfigured(): void {
      stopped.clear();
      const configured = new Set(names());
      for (const [endpoint, last] of failing) {
        if (configured.has(endpoint)) last.pausedUntil = 0;
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
        const last = failing.get(endpoint);
        if (!last) return { name, status: "ok", detail: null };
        const waiting = isChannel ? waits(announcements, "reply", "replies") : notificationsWait(notifications[key]);
        const detail = stopped.has(endpoint)
          ? `Stopped: the receiver answered ${last.reason}.`
          : `Last delivery failed: ${last.reason}.`;
        return { name, status: "degraded", detail: detail + waiting };
      });
    },
  };
}

/** The key of the endpoint in the configuration. */
export function nameOf(endpoint: Endpoint): string {
  return endpoint.slice(endpoint.indexOf(":") + 1);
}

function notificationsWait(count = 0): string {
  return waits(count, "notification", "notifications");
}

function waits(count: number, one: string, several: string): string {
  return count === 0 ? "" : ` ${count} ${count === 1 ? `${one} is` : `${several} are`} waiting.`;
}
