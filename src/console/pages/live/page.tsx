import { useEffect } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { now } from "#console/app/clock.ts";
import { onPush } from "#console/app/live.ts";
import { hrefOf } from "#console/app/router.ts";
import { isConsole, RPC_REASON } from "#console/app/session.ts";
import { camelToSnake } from "#console/lib/case.ts";
import { count, plural } from "#console/lib/format.ts";
import { MOST_SHOWN } from "#console/lib/live-list.ts";
import { perMinute, troublesOf, type Wrong } from "#console/lib/troubles.ts";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { Pill } from "#console/parts/live-table.tsx";
import { PageHead, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago, Countdown } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { FirstRequest } from "../activity/first-request.tsx";
import type { Row } from "../activity/page.tsx";
import { Refusals } from "./refusals.tsx";
import { Spark } from "./spark.tsx";
import "./live.css";

const SHOWN = 30;
const MINUTES = 60;

/** All that this page asks of RPC at once. */
const readNow = async () => {
  if (!isConsole.peek()) return undefined;
  const [health, { agents }] = await Promise.all([rpc().system.health(), rpc().agent.list()]);
  return { health, agents };
};

const readWaiting = async (signal: AbortSignal) => {
  const [{ events, next_cursor }, dead] = await Promise.all([
    rest().call("events.list", { query: { status: "queued", limit: 100 } }, { signal }),
    rest().call("events.list", { query: { status: "dead", limit: 1 } }, { signal }),
  ]);
  return {
    count: events.length,
    more: next_cursor !== null,
    oldest: events.at(-1)?.created_at,
    hasDead: dead.events.length > 0,
  };
};

/** What is happening now: what is wrong, the agents, and the requests as they come. */
const Page = () => {
  const current = useLoaded(readNow);
  const waiting = useLoaded(readWaiting);
  const rows = useLiveRows<Row>({
    keyOf: ({ delivery_id }) => delivery_id,
    async read(page, signal) {
      const { deliveries, next_cursor } = await rest().call(
        "deliveries.list",
        { query: { ...page, limit: MOST_SHOWN } },
        { signal },
      );
      return { items: deliveries, cursor: next_cursor };
    },
    request: { gateway: null, deliveries: true },
    itemOf: ({ method, params }) =>
      method === "delivery.recorded" || method === "delivery.changed"
        ? (camelToSnake((params as { delivery: object }).delivery) as Row)
        : undefined,
    keys: [],
    isReading: false,
  });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      timer = undefined;
      if (document.hidden) return;
      void current.reload();
      void waiting.reload();
    };
    const stop = onPush(({ method }) => {
      if (!method.startsWith("message.")) timer ??= setTimeout(look, 1_000);
    });
    const beat = setInterval(look, 10_000);
    return () => {
      stop();
      clearTimeout(timer);
      clearInterval(beat);
    };
  }, []);
  const { items } = rows.list.value;
  const wrong = troublesOf(current.value.value?.health, current.value.value?.agents ?? []);
  const isEmpty = items.length === 0 && !rows.isLoading.value && rows.error.value === undefined;
  return (
    <>
      <PageHead
        title="Live"
        updated={rows.at.value}
        refresh={() => void Promise.all([rows.reload(), current.reload(), waiting.reload()])}
      />
      {rows.error.value !== undefined && <TroubleNote error={rows.error.value} retry={() => void rows.reload()} />}
      <Troubles wrong={wrong} hasDead={waiting.value.value?.hasDead === true} />
      {isConsole.value ? (
        <AgentsNow agents={current.value.value?.agents} error={current.error.value} />
      ) : (
        <Note tone="warning">{RPC_REASON}</Note>
      )}
      <Figures rows={items} waiting={waiting.value.value} />
      <Refusals refused={items.filter(isFreshRefusal)} />
      <section class="section" aria-labelledby="live-requests">
        <header>
          <h2 id="live-requests">Requests</h2>
          <div class="actions">
            <a href={hrefOf("/activity")}>All requests</a>
          </div>
        </header>
        {isEmpty ? (
          <FirstRequest isLive={isConsole.value} onSent={() => void rows.reload()} />
        ) : items.length === 0 ? (
          <Skeleton rows={6} />
        ) : (
          <>
            <Pill rows={rows} />
            <Table
              label="The latest requests"
              rows={items.slice(0, SHOWN)}
              columns={COLUMNS}
              keyOf={({ delivery_id }) => delivery_id}
              hrefOf={({ delivery_id }) => hrefOf(`/d/${delivery_id}`)}
            />
          </>
        )}
      </section>
    </>
  );
};

const COLUMNS: readonly Column<Row>[] = [
  {
    name: "Request",
    narrow: "first",
    cell: ({ path, operation, method }) => (
      <>
        <span class="mono">{path}</span> <span class="faint">{operation || method}</span>
      </>
    ),
  },
  { name: "Outcome", width: "128px", narrow: "first", cell: ({ outcome }) => <State of={outcome} /> },
  {
    name: "Session",
    width: "28%",
    narrow: "none",
    cell: ({ session_id }) => session_id ?? <span class="faint">–</span>,
  },
  { name: "Caller", width: "14%", cell: ({ caller, address }) => caller ?? <span class="faint">{address}</span> },
  { name: "When", width: "88px", align: "end", cell: ({ at }) => <Ago at={at} /> },
];

/** What is wrong, on top, with where to look. Nothing at all where nothing is. */
const Troubles = ({ wrong, hasDead }: { wrong: readonly Wrong[]; hasDead: boolean }) => (
  <>
    {wrong.map(({ what, detail, path }) => (
      <Note key={what} tone="warning">
        <strong>{what}</strong>: {detail} <a href={hrefOf(path)}>Look there</a>
      </Note>
    ))}
    {hasDead && (
      <Note tone="warning">
        <strong>Some system events were given up.</strong>{" "}
        <a href={hrefOf("/events?status=dead")}>See why, and queue them again</a>
      </Note>
    )}
  </>
);

type Agents = NonNullable<Awaited<ReturnType<typeof readNow>>>["agents"];

const AgentsNow = ({ agents, error }: { agents: Agents | undefined; error: unknown }) => (
  <section class="section" aria-labelledby="live-agents">
    <h2 id="live-agents">Agents</h2>
    {error !== undefined && <TroubleNote error={error} />}
    {!agents && error === undefined && <Skeleton rows={2} />}
    {agents && (
      <ul class="agent-cards">
        {agents.map(({ agentName, state, running, queued, waitingEvents, heartbeat }) => (
          <li key={agentName}>
            <div class="line">
              <a href={hrefOf(`/agents/${encodeURIComponent(agentName)}`)}>
                <strong>{agentName}</strong>
              </a>
              <State of={state} quiet />
            </div>
            <p class="muted">
              {[
                running > 0 && `${count(running)} running`,
                queued > 0 && `${count(queued)} queued`,
                waitingEvents > 0 && plural(waitingEvents, "event"),
              ]
                .filter(Boolean)
                .join(", ") || "Nothing to do"}
              {heartbeat.nextAt !== null && (
                <>
                  {" · beat "}
                  <Countdown to={heartbeat.nextAt} over="now" />
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
    )}
  </section>
);

type Waiting = Awaited<ReturnType<typeof readWaiting>>;

const isFreshRefusal = ({ outcome, at }: Row): boolean =>
  outcome === "refused" && now.value - Date.parse(at) < 3_600_000;

/** The few numbers that say something: requests a minute, and events that wait. */
const Figures = ({ rows, waiting }: { rows: readonly Row[]; waiting: Waiting | undefined }) => {
  const counts = perMinute(
    rows.filter(({ outcome }) => outcome !== "refused").map(({ at }) => Date.parse(at)),
    now.value,
    MINUTES,
  );
  if (rows.length === 0) return null;
  return (
    <section class="figures" aria-label="Figures">
      <figure>
        <figcaption>Requests a minute, the last hour</figcaption>
        <Spark counts={counts} />
      </figure>
      {waiting !== undefined && waiting.count > 0 && (
        <p>
          <a href={hrefOf("/events")}>
            <State of="queued" word={`${plural(waiting.count, "event")}${waiting.more ? " and more" : ""} waiting`} />
          </a>{" "}
          <span class="muted">
            the oldest since <Ago at={waiting.oldest} />
          </span>
        </p>
      )}
    </section>
  );
};

export default Page;
