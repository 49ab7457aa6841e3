import { useEffect } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import { onPush } from "#console/app/live.ts";
import { go, hrefOf, query, setQuery } from "#console/app/router.ts";
import { isConsole } from "#console/app/session.ts";
import { curlOfHook } from "#console/lib/webhook-requests.ts";
import { Command } from "#console/parts/copy.tsx";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { countOf, LiveTable } from "#console/parts/live-table.tsx";
import { Empty, PageHead, Skeleton } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import type { Column } from "#console/parts/table.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { Ago, Countdown } from "#console/parts/time.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { EventStatus, SystemEvent } from "#generated/clients/typescript/src/rest.ts";
import { type Beats, EventView } from "./event-view.tsx";
import "./events.css";

const TABS: readonly (readonly [status: EventStatus, word: string, none: string])[] = [
  ["queued", "Waiting", "No event waits."],
  ["handled", "Handled", "No event was handled lately."],
  ["dead", "Dead", "No event was given up."],
];

const NO_BEATS: Beats = new Map();

/** When each agent beats next, by its name. Without the console token nobody can ask. */
async function readBeats(): Promise<Beats> {
  if (!isConsole.peek()) return new Map();
  const { agents } = await rpc().agent.list();
  return new Map(agents.map(({ agentName, heartbeat }) => [agentName, heartbeat.nextAt]));
}

/** When an agent takes what waits; undefined where nobody can ask, null where it never does. */
function NextBeat({ at }: { at: string | null | undefined }) {
  return at === null ? <span class="muted">no heartbeat</span> : <Countdown to={at} over="now" />;
}

function columnsOf(status: EventStatus, beats: Beats): Column<SystemEvent>[] {
  return [
    {
      name: "Event",
      narrow: "first",
      cell: ({ text, reason }) => (
        <>
          {text}
          {status === "dead" && reason !== null && <span class="event-reason"> {reason}</span>}
        </>
      ),
    },
    { name: "Agent", width: "110px", narrow: "second", cell: ({ agent }) => agent },
    status === "queued"
      ? { name: "Next beat", width: "130px", cell: ({ agent }) => <NextBeat at={beats.get(agent)} /> }
      : { name: "Ended", width: "100px", cell: ({ ended_at }) => <Ago at={ended_at} /> },
    { name: "Attempts", width: "80px", align: "end", narrow: "none", cell: ({ attempts }) => String(attempts) },
    { name: "Queued", width: "88px", align: "end", cell: ({ created_at }) => <Ago at={created_at} /> },
  ];
}

/** System events: what waits for a beat, what was handled, and what was given up. */
function Page({ params: { event } }: { params: Record<string, string> }) {
  const asked = query.value.get("status");
  const [status, , none] = TABS.find(([one]) => one === asked) ?? TABS[0] ?? ["queued", "", ""];
  const beats = useLoaded(readBeats);
  const rows = useLiveRows<SystemEvent>({
    keyOf: ({ event_id }) => event_id,
    async read(page, signal) {
      const { events, next_cursor } = await rest().events.list({ status, ...page }, { signal });
      return { items: events, cursor: next_cursor };
    },
    request: { gateway: null },
    itemOf: () => undefined,
    keys: [status],
    isReading: event !== undefined,
  });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onPush(({ method }) => {
      if (!/^(event\.|heartbeat\.ran)/.test(method)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        // Nothing may move under whoever reads older ones.
        if (scrollY > 80 || rows.list.peek().newer.length > 0) void rows.catchUp();
        else void rows.reload();
        void beats.reload();
      }, 500);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  const back = () => go(`/events${location.search}`);
  useEffect(() => bindKeys([{ key: "Escape", does: "Back to the list", run: back }]), []);
  const { items } = rows.list.value;
  const body = (
    <>
      {rows.error.value !== undefined && <TroubleNote error={rows.error.value} retry={() => void rows.reload()} />}
      {items.length === 0 && rows.isLoading.value ? (
        <Skeleton rows={6} />
      ) : items.length === 0 && rows.error.value === undefined ? (
        <Empty title={none}>{status !== "dead" && <FirstEvent />}</Empty>
      ) : (
        <LiveTable
          label={`${status} events, newest first`}
          rows={rows}
          columns={columnsOf(status, beats.value.value ?? NO_BEATS)}
          keyOf={({ event_id }) => event_id}
          hrefOf={({ event_id }) => hrefOf(`/e/${event_id}${location.search}`)}
          selected={event}
        />
      )}
    </>
  );
  return (
    <>
      <PageHead
        title="Events"
        count={countOf(rows.list.value, "event")}
        updated={rows.at.value}
        refresh={() => void rows.reload()}
      />
      <Split
        list={
          <Tabs
            label="State of the events"
            open={status}
            onOpen={(one) => setQuery({ status: one === "queued" ? "" : one })}
            tabs={TABS.map(([id, name]) => ({ id, name, body: () => body }))}
          />
        }
        inspector={
          event && (
            <EventView
              key={event}
              id={event}
              beats={beats.value.value ?? NO_BEATS}
              back={back}
              changed={() => void rows.reload()}
            />
          )
        }
      />
    </>
  );
}

/** The command that queues an event, at the path where this gateway takes webhooks. */
function FirstEvent() {
  const index = useLoaded((signal) => rest().ops.index({ signal }));
  const path = index.value.value?.paths.find(({ description }) => description.startsWith("Webhooks"))?.path;
  if (path === undefined) return null;
  const body = JSON.stringify({ text: "The nightly build is green." });
  return (
    <>
      <p class="muted">An event waits until its agent's next beat. This queues one:</p>
      <Command text={curlOfHook({ origin: location.origin, path: `${path}/wake`, verify: null, body })} />
    </>
  );
}

export default Page;
