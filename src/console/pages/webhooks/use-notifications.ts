import { useEffect } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { choiceOf, query } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { endpointsOf, nextReadInMs } from "#console/lib/notifications.ts";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { useLoaded } from "#console/parts/use.ts";
import { usePushes } from "#console/parts/use-pushes.ts";
import type { Notification, NotificationState } from "#generated/clients/typescript/src/rest.ts";

export const STATES = [
  ["failed", "failed"],
  ["retrying", "retrying"],
  ["waiting", "waiting"],
  ["delivered", "delivered"],
] as const satisfies readonly (readonly [NotificationState, string])[];

/** The filters of the address. */
export function filtersOf(given: URLSearchParams): { endpoint?: string; state?: NotificationState } {
  const endpoint = given.get("endpoint");
  const state = choiceOf(given, "state", STATES);
  return { ...(endpoint && { endpoint }), ...(state && { state }) };
}

export function pagesOf(filters: ReturnType<typeof filtersOf>) {
  return async (page: { limit: number; cursor?: string }, signal: AbortSignal) => {
    const { notifications, next_cursor } = await rest().notifications.list({ ...filters, ...page }, { signal });
    return { items: notifications, cursor: next_cursor };
  };
}

export function keyOf({ notification_id }: Notification): string {
  return notification_id;
}

/** The pushes of changes that can cause a notification. */
const NEWS = /^(?:delivery\.|heartbeat\.ran|event\.|budget\.|key\.|health\.changed)/;
/** The name of a push by this page, with a notification that it changed. */
const READ = "notification.read";

/** The notifications that match the filters. They are read again after events, and while some of them have not ended. */
export function useNotifications(isReading: boolean, changed: () => void) {
  const filters = filtersOf(query.value);
  const rows = useLiveRows<Notification>({
    keyOf,
    read: pagesOf(filters),
    request: { gateway: null, deliveries: true },
    itemOf: ({ method, params }, isShown) => {
      if (method !== READ) return undefined;
      const { notification } = params as { notification: Notification };
      return isShown(keyOf(notification)) ? notification : undefined;
    },
    keys: [filters.endpoint, filters.state],
    isReading,
  });
  const refresh = () => {
    if (document.hidden) return;
    // The list must not move while the user reads older rows.
    if (isReading || scrollY > 80 || rows.list.peek().newer.length > 0) void rows.catchUp();
    else void rows.reload();
    changed();
  };
  usePushes(({ method }) => NEWS.test(method), refresh);
  const { items } = rows.list.value;
  useEffect(() => {
    const ms = nextReadInMs(items, Date.now());
    if (ms === undefined) return undefined;
    const timer = setTimeout(refresh, ms);
    return () => clearTimeout(timer);
  }, [items, rows.at.value]);
  return {
    rows,
    /** Shows a notification after an action has changed it, in its place. */
    show: (notification: Notification) => rows.add([{ method: READ, params: { notification } }]),
  };
}

/** The configured endpoints and the file that has them, and the parts of the gateway's health, which only RPC reports. */
export function useEndpoints() {
  const config = useLoaded(async (signal) => {
    const { file, values } = await rest().config.get({ signal });
    return { file, endpoints: endpointsOf(values) };
  });
  const health = useLoaded(async () =>
    whyNot("system.health") === undefined ? (await rpc().system.health()).parts : undefined,
  );
  usePushes(
    ({ method }) => method === "system.reloaded",
    () => {
      void config.reload();
      void health.reload();
    },
  );
  return { config, health };
}
