/** Notifications: events for the endpoints of the policy, stored in the transaction of the change that they report. */
import { hopsInMetadata, MAX_HOPS } from "#kit/hops.ts";
import { NO_USAGE, showCompleted, showUsage } from "#kit/usages.ts";
import type {
  GatewayEntry,
  Notification,
  NotificationRecord,
  NotifyRule,
  OutgoingNotification,
  Turn,
  TurnEnd,
} from "#store/store.ts";
import { addOutgoing } from "./outgoing.ts";
import { MOST_SCANNED, scanBack } from "./pages.ts";
import type { OutgoingRecord, Records, Rule, RuleInPieces } from "./records.ts";

/** The size of a listed notification without its texts. */
const LISTED_BYTES = 400;
const TOO_MANY = "too many notifications waited for the endpoint";
/** Notifications are not deleted with a session. */
const NO_SESSION = 0;

/** An event without its data, which is an object of JSON that is only made if an endpoint has the event. */
export type Noted = {
  /** Letters, digits, `_` and `-`. Unique in all stores, and derived from what it reports. */
  eventId: string;
  type: string;
  at: number;
  agent?: string | undefined;
  turnId?: string | undefined;
  sessionId?: string | undefined;
  hops?: number | undefined;
};

/** Queues a notification of an event for each endpoint that has it. The id of the event must be new. */
export function noteEvent(records: Records, event: Noted, data: () => object): void {
  const endpoints = records.bookmarks.policy.notify.filter((endpoint) => isFor(endpoint, event));
  if (endpoints.length > 0) queueFor(records, endpoints, event, JSON.stringify(data()));
}

/** True if no endpoint has any event, so that none need be made. */
export function isSilent({ bookmarks }: Records): boolean {
  return bookmarks.policy.notify.length === 0;
}

/** Queues the notifications of the end of a turn. `turn` is the ended one. */
export function notifyEnd(records: Records, turn: Turn, hops: number): void {
  if (isSilent(records)) return;
  const { turnId, sessionId, agent, status, endedAt: at = 0 } = turn;
  const eventId = eventIdOf(turnId);
  noteEvent(records, { eventId, type: `turn.${status}`, at, agent, turnId, sessionId, hops }, () => dataOf(turn, hops));
}

/** Queues the notifications of entries of the gateway's stream that are events. */
export function noteEntries(records: Records, entries: readonly GatewayEntry[]): void {
  if (isSilent(records)) return;
  for (const { seq, at, ...news } of entries) {
    const { name: type, ...data } = news;
    if (news.name === "event.dead") {
      const { eventId, agentName: agent } = news;
      const hops = hopsInMetadata(records.events.find(eventId)?.metadata);
      noteEvent(records, { eventId: eventIdOf(eventId, seq), type, at, agent, hops }, () => data);
    } else if (news.name === "budget.warning" || news.name === "budget.exceeded") {
      const resetsAt = new Date(news.resetsAt).toISOString();
      noteEvent(records, { eventId: `ntf_budget_${at}_${seq}`, type, at }, () => ({ ...data, resetsAt }));
    }
  }
}

/** Notifies endpoints that the backend of an agent began to fail, or works again, with the end of this turn. */
export function noteAgent(
  records: Records,
  { agent, turnId, sessionId }: Turn,
  { now: at, error }: Pick<TurnEnd, "now" | "error">,
  turnHops: number,
): void {
  // A change of the agent is also sent if a loop found it. It cannot continue the loop, because it is sent only once.
  const hops = Math.min(turnHops, MAX_HOPS - 1);
  const type = error ? "agent.failing" : "agent.recovered";
  const event = { eventId: eventIdOf(turnId, "agent"), type, at, agent, turnId, sessionId, hops };
  noteEvent(records, event, () => ({ agent, reason: error ? (error.detail ?? error.name) : null }));
}

/** `ntf_` and the part of an id after its prefix: the id of the one event that ends it, or with `more` of another. */
export function eventIdOf(id: string, more?: string | number): string {
  const own = `ntf_${id.slice(id.indexOf("_") + 1)}`;
  return more === undefined ? own : `${own}_${more}`;
}

function isFor({ events, agents }: NotifyRule, { type, agent }: Noted): boolean {
  return events.includes(type) && (agents === undefined || (agent !== undefined && agents.includes(agent)));
}

function dataOf(turn: Turn, hops: number): object {
  const { status, usage = NO_USAGE, error, createdAt, endedAt = createdAt } = turn;
  return {
    turnId: turn.turnId,
    sessionId: turn.sessionId,
    agent: turn.agent,
    status,
    surface: turn.surface,
    caller: turn.caller,
    model: turn.model ?? null,
    usage: status === "completed" ? showCompleted(usage) : showUsage(usage),
    error: error ? { name: error.name, detail: error.detail ?? null } : null,
    deliveryId: turn.deliveryId ?? null,
    createdAt: new Date(createdAt).toISOString(),
    endedAt: new Date(endedAt).toISOString(),
    ...(hops > 0 && { hops }),
  };
}

function queueFor(records: Records, endpoints: readonly NotifyRule[], event: Noted, data: string): void {
  const { eventId, type, at, agent, turnId, sessionId, hops = 0 } = event;
  const createdAt = records.moment.now;
  const most = records.bookmarks.policy.notifications;
  for (const { name: endpoint } of endpoints) {
    if (records.notifications.waiting(endpoint) >= most) failOldest(records, endpoint);
    const notification: Notification = {
      notificationId: `${eventId}.${endpoint}`,
      eventId,
      endpoint,
      type,
      agent,
      turnId,
      sessionId,
      data,
      at,
      hops,
      state: "waiting",
      attempts: 0,
      code: undefined,
      reason: undefined,
      createdAt,
      endedAt: undefined,
      nextAt: undefined,
    };
    records.notifications.put({ notification, place: records.next("place"), endedOrder: undefined });
    addOutgoing(records, messageOf(notification), NO_SESSION);
  }
}

/**
 * Fails the notification that has waited for the longest time without an attempt. The others are being sent or retried: they are at most as many as the gateway
 * sends at once, or end within a day.
 */
function failOldest(records: Records, endpoint: string): void {
  const oldest = records.outgoing.firstReady(`notify:${endpoint}`);
  const record = oldest && records.notifications.find(oldest.message.id);
  if (!record) return;
  const { now: endedAt } = records.moment;
  const notification: Notification = { ...record.notification, state: "failed", reason: TOO_MANY, endedAt };
  records.outgoing.delete(oldest);
  putEnded(records, record, notification);
}

/** Stores a notification that has just ended, and erases the oldest ended ones of its endpoint above the limit. */
export function putEnded(records: Records, record: NotificationRecord, notification: Notification): void {
  records.notifications.put({ ...record, notification, endedOrder: records.next("order") });
  records.notifications.eraseEnded(records.bookmarks.policy.notifications, notification.endpoint);
}

function messageOf({ notificationId: id, endpoint, hops, createdAt }: Notification): OutgoingNotification {
  return { id, endpoint: `notify:${endpoint}`, hops, createdAt, attempts: 0 };
}

export const listNotifications: RuleInPieces<"listNotifications"> = (records, { endpoint, state, limit, cursor }) =>
  scanBack({
    before: (place, most) => records.notifications.before(place, most),
    placeOf: ({ place }) => place,
    show: ({ notification }: NotificationRecord) => {
      const isWanted =
        (endpoint ?? notification.endpoint) === notification.endpoint &&
        (state ?? notification.state) === notification.state;
      return isWanted ? notification : undefined;
    },
    bytesOf: ({ data }) => LISTED_BYTES + data.length,
    limit,
    cursor,
    ...((endpoint !== undefined || state !== undefined) && { most: MOST_SCANNED }),
  });

export const getNotification: Rule<"getNotification"> = (records, notificationId) =>
  records.notifications.find(notificationId)?.notification;

export const replayNotification: Rule<"replayNotification"> = (records, notificationId, { now }) => {
  const record = records.notifications.find(notificationId);
  if (!record) return undefined;
  if (record.endedOrder === undefined) return sendNow(records, record);
  const notification: Notification = {
    ...record.notification,
    state: "waiting",
    attempts: 0,
    code: undefined,
    reason: undefined,
    createdAt: now,
    endedAt: undefined,
  };
  records.notifications.put({ ...record, notification, endedOrder: undefined });
  addOutgoing(records, messageOf(notification), NO_SESSION);
  return notification;
};

/** Ends the delay of a notification that is retried. One that is being sent stays so. */
function sendNow(records: Records, record: NotificationRecord): Notification {
  const outgoing: OutgoingRecord | undefined = records.outgoing.find(record.notification.notificationId);
  if (!outgoing || outgoing.dueAt === undefined) return record.notification;
  const notification = { ...record.notification, nextAt: records.moment.now };
  records.outgoing.put({ ...outgoing, dueAt: undefined });
  records.notifications.put({ ...record, notification });
  records.notify({ kind: "work", of: "outgoing" });
  return notification;
}

export const notifyEvent: Rule<"notifyEvent"> = (records, { now: at, eventId, type, agent, data }) => {
  const event = { eventId, type, at, agent };
  const endpoints = records.bookmarks.policy.notify.filter(
    (endpoint) => isFor(endpoint, event) && !records.notifications.find(`${eventId}.${endpoint.name}`),
  );
  if (endpoints.length > 0) queueFor(records, endpoints, event, data);
};
