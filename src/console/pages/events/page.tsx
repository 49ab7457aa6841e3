import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { onPush } from "#console/app/live.ts";
import { go, hrefOf, query, setQuery } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { plural } from "#console/lib/format.ts";
import { curlOfHook } from "#console/lib/webhook-requests.ts";
import { Bulk, readAll } from "#console/parts/bulk.tsx";
import { Command } from "#console/parts/copy.tsx";
import { ActionButton, Filters, FilterText } from "#console/parts/fields.tsx";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { countOf, LiveTable } from "#console/parts/live-table.tsx";
import { Empty, PageHead } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import type { Column } from "#console/parts/table.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { Ago } from "#console/parts/time.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { EventStatus, SystemEvent } from "#generated/clients/typescript/src/rest.ts";
import { type Beats, EventView, NextBeat } from "./event-view.tsx";

const TABS: readonly (readonly [status: EventStatus, word: string, none: string])[] = [
  ["queued", "Waiting", "No events are waiting."],
  ["handled", "Handled", "No events were handled recently."],
  ["dead", "Dead", "No dead events."],
];

const NO_BEATS: Beats = new Map();
/** More than a row has room for. */
const SHOWN_CHARACTERS = 300;

/** The time of each agent's next beat, by its name. Only the console token can read it. */
async function readBeats(): Promise<Beats> {
  if (whyNot("agent.list") !== undefined) return new Map();
  const { agents } = await rpc().agent.list();
  return new Map(agents.map(({ agentName, heartbeat }) => [agentName, heartbeat.nextAt]));
}

function columnsOf(status: EventStatus, beats: Beats): Column<SystemEvent>[] {
  return [
    {
      name: "Event",
      narrow: "first",
      cell: ({ text, reason }) => (
        <>
          <bdi>{text.slice(0, SHOWN_CHARACTERS)}</bdi>
          {status === "dead" && reason !== null && <span class="fault"> {reason}</span>}
        </>
      ),
    },
    { name: "Agent", width: "110px", narrow: "second", cell: ({ agent }) => agent },
    status === "queued"
      ? {
          name: "Next heartbeat",
          width: "130px",
          cell: ({ agent }) => <NextBeat at={beats.get(agent)} never="no heartbeat" />,
        }
      : { name: "Ended", width: "100px", cell: ({ ended_at }) => <Ago at={ended_at} /> },
    { name: "Attempts", width: "80px", align: "end", narrow: "none", cell: ({ attempts }) => String(attempts) },
    { name: "Queued", width: "88px", align: "end", cell: ({ created_at }) => <Ago at={created_at} /> },
  ];
}

/** System events: those that wait for a heartbeat, were handled, or failed too often. */
function Page({ params: { event } }: { params: Record<string, string> }) {
  const asked = query.value.get("status");
  const [status, , none] = TABS.find(([one]) => one === asked) ?? TABS[0] ?? ["queued", "", ""];
  const agent = query.value.get("agent") ?? "";
  const isQueueing = useSignal(false);
  const beats = useLoaded(readBeats);
  const readPage = async (page: { limit: number; cursor?: string }, signal: AbortSignal) => {
    const { events, next_cursor } = await rest().events.list({ status, ...(agent && { agent }), ...page }, { signal });
    return { items: events, cursor: next_cursor };
  };
  const rows = useLiveRows<SystemEvent>({
    keyOf: ({ event_id }) => event_id,
    read: readPage,
    request: { gateway: null },
    itemOf: () => undefined,
    keys: [status, agent],
    isReading: event !== undefined,
  });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onPush(({ method }) => {
      if (!/^(event\.|heartbeat\.ran)/.test(method)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        // Nothing may move while older events are read.
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
  const { items } = rows.list.value;
  const agents = [...(beats.value.value ?? NO_BEATS).keys()];
  const body = (
    <>
      {(agent !== "" || items.length > 0) && (
        <Filters names={["agent"]}>
          <FilterText name="agent" word="Agent" names={agents} />
        </Filters>
      )}
      <LiveTable
        label={`${status} events, newest first`}
        rows={rows}
        columns={columnsOf(status, beats.value.value ?? NO_BEATS)}
        keyOf={({ event_id }) => event_id}
        hrefOf={({ event_id }) => hrefOf(`/e/${event_id}${location.search}`)}
        selected={event}
        empty={
          <Empty title={agent === "" ? none : "No event matches these filters."}>
            {status !== "dead" && agent === "" && <FirstEvent />}
          </Empty>
        }
      />
    </>
  );
  return (
    <>
      <PageHead title="Events" count={countOf(rows.list.value, "event")} of={rows}>
        {status === "dead" && items.length > 0 && (
          <ActionButton icon="rotate-ccw" onClick={() => (isQueueing.value = true)}>
            Queue all again
          </ActionButton>
        )}
      </PageHead>
      <Split
        back={back}
        list={
          <Tabs
            label="Event status"
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
      {isQueueing.value && <QueueAll readPage={readPage} close={() => (isQueueing.value = false)} />}
    </>
  );
}

type QueueAllOf = { readPage: Parameters<typeof readAll<SystemEvent>>[0]; close: () => void };

/** Queues all dead events of the list again. */
function QueueAll({ readPage, close }: QueueAllOf) {
  return (
    <Bulk<SystemEvent>
      title="Queue all dead events again?"
      act="Queue"
      done="queued"
      noun="event"
      read={async (signal) => {
        const { items, hasMore } = await readAll(readPage, signal);
        return { able: items, skipped: [], hasMore };
      }}
      effect={(events) => <QueueEffect events={events} />}
      run={({ event_id }) => rest().events.replay(event_id)}
      pathOf={({ event_id }) => `/e/${event_id}`}
      leftOut={["event-not-dead", "event-not-found", "agent-not-found"]}
      close={close}
    />
  );
}

/** The agents that get the events, each with their number. */
function QueueEffect({ events }: { events: readonly SystemEvent[] }) {
  const agents = [...new Set(events.map((event) => event.agent))];
  return (
    <>
      <ul>
        {agents.map((agent) => (
          <li key={agent}>
            {plural(events.filter((event) => event.agent === agent).length, "event")} for the agent {agent}
          </li>
        ))}
      </ul>
      <p class="muted">Each agent handles its events at its next heartbeat. The number of attempts restarts at 0.</p>
    </>
  );
}

/** The command that queues an event, with this gateway's path of webhooks. */
function FirstEvent() {
  const index = useLoaded((signal) => rest().ops.index({ signal }));
  const path = index.value.value?.paths.find(({ description }) => description.startsWith("Webhooks"))?.path;
  if (path === undefined) return null;
  const body = JSON.stringify({ text: "The nightly build is green." });
  return (
    <>
      <p class="muted">Events wait for the agent's next heartbeat. To queue an event:</p>
      <Command text={curlOfHook({ origin: location.origin, path: `${path}/wake`, verify: null, body })} />
    </>
  );
}

export default Page;
