import type { Notification } from "#generated/clients/typescript/src/rest.ts";
import { rest } from "../app/api.ts";
import { endpointIn } from "../lib/notifications.ts";

const PAGE = 500;

/** Finds the stored notification with this id, or all notifications of the event with this id (the `webhook-id`). */
export async function findNotifications(id: string, signal?: AbortSignal): Promise<readonly Notification[]> {
  const query = { limit: PAGE, ...(id.includes(".") && { endpoint: endpointIn(id) }) };
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: { notifications: Notification[]; next_cursor: string | null } = await rest().notifications.list(
      { ...query, ...(cursor && { cursor }) },
      { ...(signal && { signal }) },
    );
    const found = page.notifications.filter((one) => one.notification_id === id || one.webhook_id === id);
    if (found.length > 0) return found;
    cursor = page.next_cursor;
  }
  return [];
}
