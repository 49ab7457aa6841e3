import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { now } from "#console/app/clock.ts";
import { go, hrefOf, query, setQuery } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import { endpointIn, healthOf } from "#console/lib/notifications.ts";
import { Bulk, readAll } from "#console/parts/bulk.tsx";
import { FilterSelect, Filters } from "#console/parts/fields.tsx";
import { countOf, LiveTable } from "#console/parts/live-table.tsx";
import { Empty, type Head, Pending } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { State } from "#console/parts/state.tsx";
import type { Column } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Failed } from "#console/parts/trouble.tsx";
import type { Notification } from "#generated/clients/typescript/src/rest.ts";
import { Endpoints, FirstEndpoint } from "./endpoints.tsx";
import { NotificationView } from "./notification-view.tsx";
import { filtersOf, keyOf, pagesOf, STATES, useEndpoints, useNotifications } from "./use-notifications.ts";

/** The data of the tab for the head of the page. */
export type NotificationsHead = Head & { hasRows: boolean };

const COLUMNS: readonly Column<Notification>[] = [
  {
    name: "Notification",
    narrow: "first",
    cell: ({ state, type, reason, next_attempt_at }) => (
      <span class="work" title={reason ?? undefined}>
        <State of={state} quiet />
        <span class="cut">
          {type}
          {state !== "delivered" && reason !== null && <span class="faint"> {reason}</span>}
          {next_attempt_at !== null && (
            <span class="faint">
              , again <Due at={next_attempt_at} />
            </span>
          )}
        </span>
      </span>
    ),
  },
  { name: "Endpoint", width: "16%", cell: ({ endpoint }) => endpoint },
  { name: "Agent", width: "14%", drop: 2, cell: ({ agent }) => agent },
  {
    name: "Attempts",
    width: "80px",
    align: "end",
    drop: 1,
    narrow: "none",
    cell: ({ attempts }) => String(attempts),
  },
  { name: "When", width: "88px", align: "end", cell: ({ created_at }) => <Ago at={created_at} /> },
];

function Due({ at }: { at: string }) {
  return Date.parse(at) > now.value ? <Ago at={at} /> : <>now</>;
}

type TabOf = {
  /** The id of the notification that is shown. */
  chosen: string | undefined;
  head: Signal<NotificationsHead | undefined>;
};

/** The events that the gateway sends to other systems: the endpoints, and each notification. */
export function Notifications({ chosen, head }: TabOf) {
  const { config, health } = useEndpoints();
  const { rows, show } = useNotifications(chosen !== undefined, () => void health.reload());
  const reload = async () => void (await Promise.all([config.reload(), health.reload(), rows.reload()]));
  const { endpoints, file } = config.value.value ?? { endpoints: undefined, file: null };
  const parts = health.value.value;
  const filters = filtersOf(query.value);
  const isFiltered = Object.keys(filters).length > 0;
  const { items } = rows.list.value;
  const hasRows = items.length > 0 || isFiltered;
  const count = countOf(rows.list.value, "notification");
  useEffect(() => {
    head.value = { at: rows.at, reload, count, hasRows };
  }, [count, hasRows]);
  const isFirst = endpoints?.length === 0 && !hasRows;
  const back = () => go(`/webhooks${location.search || "?tab=notifications"}`);
  const endpointOfChosen = chosen === undefined ? "" : endpointIn(chosen);
  return (
    <Split
      back={back}
      list={
        <>
          <Pending of={config} rows={2} />
          <Failed of={health} />
          {endpoints && endpoints.length > 0 && (
            <Endpoints endpoints={endpoints} health={parts} changed={() => void health.reload()} />
          )}
          <section class="section" aria-label="Notifications">
            {hasRows && <NotificationFilters names={endpoints?.map(({ name }) => name) ?? []} />}
            <LiveTable
              label="Notifications, newest first"
              rows={rows}
              columns={COLUMNS}
              keyOf={keyOf}
              hrefOf={({ notification_id }) =>
                hrefOf(`/n/${encodeURIComponent(notification_id)}${location.search || "?tab=notifications"}`)
              }
              selected={chosen}
              empty={isFirst ? <FirstEndpoint file={file} /> : endpoints && <NoNotifications isFiltered={isFiltered} />}
            />
          </section>
          {endpoints && query.value.get("replay") === "failed" && (
            <ReplayFailed
              endpoint={filters.endpoint}
              names={endpoints.map(({ name }) => name)}
              stopped={endpoints
                .filter(({ name }) => parts && healthOf(parts, name).state === "stopped")
                .map(({ name }) => name)}
              close={() => {
                setQuery({ replay: undefined });
                void rows.reload();
              }}
            />
          )}
        </>
      }
      inspector={
        chosen !== undefined && (
          <NotificationView
            key={chosen}
            id={chosen}
            row={items.find((row) => keyOf(row) === chosen)}
            readAt={rows.at.value}
            isConfigured={endpoints?.some(({ name }) => name === endpointOfChosen)}
            health={parts && healthOf(parts, endpointOfChosen)}
            back={back}
            changed={(notification) => {
              show(notification);
              void rows.catchUp();
            }}
          />
        )
      }
    />
  );
}

function NoNotifications({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No notification matches these filters.">
      <p class="muted">
        The gateway stores the latest <code>limits.notifications</code> delivered and failed notifications of each
        endpoint.
      </p>
    </Empty>
  ) : (
    <Empty title="No notifications yet.">
      <p class="muted">The next event of an endpoint appears here. A test event is not stored.</p>
    </Empty>
  );
}

/** An endpoint that was removed from the configuration can still have notifications. */
function NotificationFilters({ names }: { names: readonly string[] }) {
  const { endpoint } = filtersOf(query.value);
  const all = endpoint === undefined || names.includes(endpoint) ? names : [...names, endpoint];
  return (
    <Filters names={["endpoint", "state"]}>
      <FilterSelect name="endpoint" word="Endpoint" values={all.map((name) => [name, name] as const)} />
      <FilterSelect name="state" word="State" values={STATES} />
    </Filters>
  );
}

type ReplayEffectOf = { notifications: readonly Notification[]; stopped: readonly string[] };
type ReplayFailedOf = {
  endpoint: string | undefined;
  /** The configured endpoints, and those that are stopped. */
  names: readonly string[];
  stopped: readonly string[];
  close: () => void;
};

/** Sends all failed notifications again, of one endpoint or of all. */
function ReplayFailed({ endpoint, names, stopped, close }: ReplayFailedOf) {
  const configured = new Set(names);
  return (
    <Bulk<Notification>
      title={endpoint === undefined ? "Replay all failed notifications?" : `Replay all that failed for ${endpoint}?`}
      act="Replay"
      done="queued"
      noun="notification"
      read={async (signal) => {
        const read = pagesOf({ state: "failed", ...(endpoint !== undefined && { endpoint }) });
        const { items, hasMore } = await readAll(read, signal);
        const able = items.filter((item) => configured.has(item.endpoint));
        const removed = items.filter((item) => !configured.has(item.endpoint));
        return { able, skipped: removed.map(() => "the endpoint was removed from the configuration"), hasMore };
      }}
      effect={(notifications) => <ReplayEffect notifications={notifications} stopped={stopped} />}
      run={({ notification_id }) => rest().notifications.replay(notification_id)}
      pathOf={({ notification_id }) => `/n/${encodeURIComponent(notification_id)}`}
      leftOut={["notification-not-replayable", "notification-not-found"]}
      close={close}
    />
  );
}

/** The endpoints that get the notifications, each with their number. */
function ReplayEffect({ notifications, stopped }: ReplayEffectOf) {
  const endpoints = [...new Set(notifications.map(({ endpoint }) => endpoint))];
  return (
    <>
      <ul>
        {endpoints.map((name) => (
          <li key={name}>
            {plural(notifications.filter(({ endpoint }) => endpoint === name).length, "notification")} for the endpoint{" "}
            {name}
            {stopped.includes(name) && <span class="muted">, which is stopped: they will wait</span>}
          </li>
        ))}
      </ul>
      <p class="muted">
        The <code>webhook-id</code> does not change, so receivers can ignore repeated events.
      </p>
    </>
  );
}
