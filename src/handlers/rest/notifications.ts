import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { replayNotification, sendTestEvent } from "#core/outbox/operator-calls.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import type { Notification } from "#store/store.ts";
import { pageOf, timeOf, timeOrNull } from "./present.ts";

type Bodies = Pick<RestHandlers<CallContext>, "notifications.list" | "notifications.replay" | "notifications.test">;

export function notifications(core: Core): Bodies {
  return {
    "notifications.list": async ({ query }) => {
      const { items, next } = await pageOf(core.store.listNotifications(query));
      return { notifications: items.map(notificationOf), next_cursor: next ?? null };
    },
    "notifications.replay": async ({ path }) => notificationOf(await replayNotification(core, path.notification_id)),
    "notifications.test": async ({ path }) => {
      const { delivered, status, reason, ms } = await sendTestEvent(core, path.name);
      return { delivered, status, reason, duration_ms: ms };
    },
  };
}

function notificationOf(notification: Notification): RestReplies["notifications.replay"] {
  return {
    notification_id: notification.notificationId,
    webhook_id: notification.eventId,
    endpoint: notification.endpoint,
    type: notification.type as RestReplies["notifications.replay"]["type"],
    agent: notification.agent ?? null,
    turn_id: notification.turnId ?? null,
    session_id: notification.sessionId ?? null,
    state: notification.state,
    attempts: notification.attempts,
    status: notification.code ?? null,
    reason: notification.reason ?? null,
    created_at: timeOf(notification.createdAt),
    ended_at: timeOrNull(notification.endedAt),
    next_attempt_at: timeOrNull(notification.nextAt),
  };
}
