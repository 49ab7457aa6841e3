/** The calls of operators about notifications and their endpoints. */
import type { Core } from "#core/core.ts";
import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";
import type { Notification } from "#store/store.ts";
import type { EndpointTest } from "./notifications.ts";

/**
 * Sends a notification again. Throws `notification-not-found`, and `notification-not-replayable` if its endpoint was removed from the configuration,
 * because no attempt could succeed.
 */
export async function replayNotification(
  { store, clock, outbox }: Pick<Core, "store" | "clock" | "outbox">,
  notificationId: string,
): Promise<Notification> {
  const found = await store.getNotification(notificationId);
  if (found && !outbox.hasEndpoint(found.endpoint)) {
    const reason = `The endpoint ${found.endpoint} was removed from the configuration.`;
    throw new GatewayError("notification-not-replayable", reason);
  }
  const queued = found && (await store.replayNotification(notificationId, { now: clock.now() }));
  if (!queued)
    throw new GatewayError("notification-not-found", `No notification has the id ${quoted(notificationId)}.`);
  outbox.tryNow(queued.endpoint);
  return queued;
}

/** Sends a test event to an endpoint, once and at once. Throws `endpoint-not-found`. */
export async function sendTestEvent(
  { outbox, settings }: Pick<Core, "outbox" | "settings">,
  name: string,
): Promise<EndpointTest> {
  const result = await outbox.testEndpoint(name);
  if (result) return result;
  const meant = suggest(name, [...settings().notify.keys()]);
  throw new GatewayError("endpoint-not-found", `No endpoint is named ${quoted(name)}.${meant}`);
}
