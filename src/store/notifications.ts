/** Events for the endpoints of `notify`, and the part of `store.ts` for them. */

import { number, optional, short, type TypeOf, text, typed } from "./fields.ts";
import type { Page } from "./inbound.ts";

/** `waiting`: it can be sent, or its endpoint is stopped. `retrying`: it is sent again at `nextAt`. */
export type NotificationState = "waiting" | "retrying" | "delivered" | "failed";

/** An event for one endpoint. It outlives its session, because it has its own data. */
export const NOTIFICATION = {
  /** The event's id, `.` and the endpoint. */
  notificationId: short,
  /** The same for all endpoints and in each attempt. It has no `.`. */
  eventId: short,
  /** The key in `notify`. */
  endpoint: short,
  type: short,
  agent: optional(short),
  turnId: optional(short),
  sessionId: optional(text),
  /** The event as JSON, without the reply of its turn. */
  data: text,
  /** The time of the event. */
  at: number,
  /** The number of announcements, agents and notifications that led to the event. */
  hops: number,
  state: typed<NotificationState>(),
  attempts: number,
  /** The HTTP status of the last attempt, if there was an answer. */
  code: optional(number),
  /** Why the last attempt failed. */
  reason: optional(text),
  /** The time when it was queued, also by a replay. */
  createdAt: number,
  endedAt: optional(number),
  /** The time of the next attempt, by the wall clock, while it is retried. */
  nextAt: optional(number),
};
export type Notification = TypeOf<typeof NOTIFICATION>;

/** `place`: the newest has the greatest. `endedOrder`: its place among those that have ended. */
export type NotificationRecord = {
  readonly notification: Notification;
  readonly place: number;
  readonly endedOrder: number | undefined;
};

export type NotificationQuery = { endpoint?: string; state?: NotificationState; limit: number; cursor?: string };

/** An event that the gateway notices itself. `data` is JSON. `eventId` has only letters, digits, `_` and `-`. */
export type NotedEvent = { now: number; eventId: string; type: string; agent?: string; data: string };

/** `store.ts` states the guarantees of all methods. */
export interface NotificationStore {
  /**
   * Newest first, ended ones and others. Replays keep their place. `cursor` is the `next` of an earlier page; any other value throws
   * `invalid-params`. With a filter, a page reads at most `MOST_SCANNED` notifications, so it may have fewer than `limit`, or none, and still a `next`.
   */
  listNotifications(query: NotificationQuery): Promise<Page<Notification>>;
  /** Stored until it has ended, and then until `policy.notifications` later ones of its endpoint have ended. */
  getNotification(notificationId: string): Promise<Notification | undefined>;
  /**
   * Queues an ended notification again, with the same event id and 0 attempts. A notification that has not ended is due immediately. Returns it in its new
   * state; undefined if it is not stored.
   */
  replayNotification(notificationId: string, replay: { now: number }): Promise<Notification | undefined>;
  /** Queues a notification for each endpoint that has the event. A repeat with the same `eventId` changes nothing. */
  notifyEvent(event: NotedEvent): Promise<void>;
}
