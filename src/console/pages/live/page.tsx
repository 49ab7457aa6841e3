import { useEffect } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { onPush } from "#console/app/live.ts";
import { notReady } from "#console/app/readiness.ts";
import { hrefOf } from "#console/app/router.ts";
import { isConsole, RPC_REASON } from "#console/app/session.ts";
import { camelToSnake } from "#console/lib/case.ts";
import { count, plural } from "#console/lib/format.ts";
import { shortId } from "#console/lib/ids.ts";
import { MOST_SHOWN } from "#console/lib/live-list.ts";
import { type StreamRow, streamOf } from "#console/lib/live-stream.ts";
import { troublesOf, type Wrong } from "#console/lib/troubles.ts";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { Pill } from "#console/parts/live-table.tsx";
import { PageHead, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago, Countdown } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { FirstRequest } from "../activity/first-request.tsx";
import type { Row } from "../activity/inspector.tsx";
import { Pace, readPace } from "./pace.tsx";
import { Refusals, readRefusals } from "./refusals.tsx";
import "./live.css";

const SHOWN = 40;

/** All that this page asks of RPC at once. */
async function readNow() {
  if (!isConsole.peek()) return undefined;
  const [health, { agents }] = await Promise.all([rpc().system.health(), rpc().agent.list()]);
  return { health, agents };
}

/** As many are counted; with more of them, the oldest is not known. */
const COUNTED = 100;

/** The turns and events that wait, and if an event was given up. */
async function readWaiting(signal: AbortSignal) {
  const queued = { status: "queued", limit: COUNTED } as const;
  const [{ turns, next_cursor: moreTurns }, { events, next_cursor: moreEvents }, dead] = await Promise.all([
    rest().turns.list(queued, { signal }),
    rest().events.list(queued, { signal }),
    rest().events.list({ status: "dead", limit: 1 }, { signal }),
  ]);
  return {
    turns: { total: turns.length, hasMore: moreTurns !== null, oldest: turns.at(-1)?.created_at },
    events: { total: events.length, hasMore: moreEvents !== null, oldest: events.at(-1)?.created_at },
    hasDead: dead.events.length > 0,
  };
}

/** The newest turns. Their pushes do not name the agent, so that they are read. */
async function readTurns(signal: AbortSignal) {
  return (await rest().turns.list({ limit: SHOWN }, { signal })).turns;
}

type Turn = Awaited<ReturnType<typeof readTurns>>[number];

/** The gateway as it is now: troubles on top, the agents, and the requests and turns as they come. */
function Page() {
  const current = useLoaded(readNow);
  const waiting = useLoaded(readWaiting);
  const turns = useLoaded(readTurns);
  const pace = useLoaded(readPace);
  const refusals = useLoaded(readRefusals);
  const rows = useLiveRows<Row>({
    keyOf: ({ delivery_id }) => delivery_id,
    async read(page, signal) {
      const { deliveries, next_cursor } = await rest().deliveries.list({ ...page, limit: MOST_SHOWN }, { signal });
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
    let last = 0;
    const poll = () => {
      timer = undefined;
      last = Date.now();
      if (document.hidden) return;
      void current.reload();
      void waiting.reload();
      // Nothing may move under whoever has scrolled.
      if (scrollY <= 80) void turns.reload();
    };
    const stop = onPush(({ method }) => {
      // Soon after a quiet time, and seldom enough while much happens.
      if (!method.startsWith("message.")) timer ??= setTimeout(poll, Math.max(250, last + 2_000 - Date.now()));
    });
    const beat = setInterval(poll, 10_000);
    // Both look at many turns or requests, and tell of an hour.
    const slowBeat = setInterval(() => {
      if (!document.hidden) void Promise.all([pace.reload(), refusals.reload()]);
    }, 30_000);
    return () => {
      stop();
      clearTimeout(timer);
      clearInterval(beat);
      clearInterval(slowBeat);
    };
  }, []);
  const { items } = rows.list.value;
  // The first one is shown at once, later ones with the next beat.
  const isNewlyRefused = items[0]?.outcome === "refused" && refusals.value.value?.refused.length === 0;
  useEffect(() => {
    if (isNewlyRefused) void refusals.reload();
  }, [isNewlyRefused]);
  const wrong = troublesOf(current.value.value?.health, current.value.value?.agents ?? []);
  const stream = streamOf(items, turns.value.value ?? [], SHOWN);
  const isEmpty = stream.length === 0 && !rows.isLoading.value && rows.error.value === undefined;
  return (
    <>
      <PageHead
        title="Live"
        updated={rows.at.value}
        refresh={() => void Promise.all([rows, turns, current, waiting, pace, refusals].map(({ reload }) => reload()))}
      />
      {rows.error.value !== undefined && <TroubleNote error={rows.error.value} retry={() => void rows.reload()} />}
      {turns.error.value !== undefined && <TroubleNote error={turns.error.value} retry={() => void turns.reload()} />}
      <Troubles wrong={wrong} hasDead={waiting.value.value?.hasDead === true} />
      {isConsole.value ? (
        <AgentsNow agents={current.value.value?.agents} error={current.error.value} />
      ) : (
        <Note tone="warning">{RPC_REASON}</Note>
      )}
      {items.length > 0 && (
        <section class="figures" aria-label="Figures">
          {pace.value.value && <Pace {...pace.value.value} />}
          {waiting.value.value && (
            <div class="waiting">
              <Waiting noun="turn" href={hrefOf("/activity?outcome=queued")} {...waiting.value.value.turns} />
              <Waiting noun="event" href={hrefOf("/events")} {...waiting.value.value.events} />
            </div>
          )}
        </section>
      )}
      {refusals.value.value && <Refusals {...refusals.value.value} />}
      <section class="section" aria-labelledby="live-stream">
        <header>
          <h2 id="live-stream">Requests and turns</h2>
          <div class="actions">
            <a href={hrefOf("/activity")}>All deliveries</a>
          </div>
        </header>
        {isEmpty ? (
          <FirstRequest isLive={isConsole.value} onSent={() => void rows.reload()} />
        ) : stream.length === 0 ? (
          <Skeleton rows={6} />
        ) : (
          <>
            <Pill rows={rows} />
            <Table
              label="The latest requests and turns"
              rows={stream}
              columns={COLUMNS}
              keyOf={({ request, turn }) => request?.delivery_id ?? turn?.turn_id ?? ""}
              hrefOf={({ request, turn }) => hrefOf(request ? `/d/${request.delivery_id}` : `/t/${turn?.turn_id}`)}
            />
          </>
        )}
      </section>
    </>
  );
}

const COLUMNS: readonly Column<StreamRow<Row, Turn>>[] = [
  {
    name: "Request or turn",
    narrow: "first",
    cell: ({ request, turn }) =>
      request ? (
        <>
          <span class="mono">{request.path}</span> <span class="faint">{request.operation || request.method}</span>
        </>
      ) : (
        <>
          Turn{" "}
          <span class="mono faint" title={turn.turn_id}>
            {shortId(turn.turn_id)}
          </span>
        </>
      ),
  },
  {
    name: "State",
    width: "128px",
    narrow: "first",
    cell: ({ request, turn }) => <State of={request?.outcome ?? turn?.status ?? ""} />,
  },
  { name: "Agent", width: "12%", cell: ({ request, turn }) => (request ?? turn)?.agent ?? null },
  {
    name: "Session",
    width: "24%",
    narrow: "none",
    cell: ({ request, turn }) => (request ?? turn)?.session_id ?? <span class="faint">–</span>,
  },
  {
    name: "Caller",
    width: "12%",
    cell: ({ request }) => request && (request.caller ?? <span class="faint">{request.address}</span>),
  },
  {
    name: "When",
    width: "88px",
    align: "end",
    cell: ({ request, turn }) => <Ago at={request?.at ?? turn?.created_at} />,
  },
];

/** The troubles, each with a link to its place. Nothing is shown where there are none. */
function Troubles({ wrong, hasDead }: { wrong: readonly Wrong[]; hasDead: boolean }) {
  return (
    <>
      {notReady.value?.word === "Draining" && (
        <Note tone="warning">
          <strong>The gateway takes no new work.</strong> {notReady.value.detail}
        </Note>
      )}
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
}

type Agents = NonNullable<Awaited<ReturnType<typeof readNow>>>["agents"];

function AgentsNow({ agents, error }: { agents: Agents | undefined; error: unknown }) {
  return (
    <section class="section" aria-labelledby="live-agents">
      <h2 id="live-agents">Agents</h2>
      {error !== undefined && <TroubleNote error={error} />}
      {!agents && error === undefined && <Skeleton rows={2} />}
      {agents && (
        <ul class="agent-cards">
          {agents.map(({ agentName, state, paused, running, queued, waitingEvents, heartbeat }) => (
            <li key={agentName}>
              <div class="line">
                <a href={hrefOf(`/agents/${encodeURIComponent(agentName)}`)}>
                  <strong>{agentName}</strong>
                </a>
                <State of={paused ? "paused" : state} quiet />
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
}

type Queue = { noun: string; href: string; total: number; hasMore: boolean; oldest: string | undefined };

/** How many wait, and since when. Nothing where none does. */
function Waiting({ noun, href, total, hasMore, oldest }: Queue) {
  return total === 0 ? null : (
    <p>
      <a href={href}>
        <State of="queued" word={`${plural(total, noun)}${hasMore ? " and more" : ""} waiting`} />
      </a>{" "}
      {!hasMore && (
        <span class="muted">
          the oldest came <Ago at={oldest} />
        </span>
      )}
    </p>
  );
}

export default Page;
