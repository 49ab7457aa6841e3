import { useSignal } from "@preact/signals";
import { go, hrefOf, query } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { chatCommand } from "#console/lib/curl.ts";
import { count } from "#console/lib/format.ts";
import { consoleSession, shortId } from "#console/lib/ids.ts";
import { Command } from "#console/parts/copy.tsx";
import { FilterSelect, Filters } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { countOf, LiveTable } from "#console/parts/live-table.tsx";
import { Empty, PageHead } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { State } from "#console/parts/state.tsx";
import type { Column } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Failed, Note } from "#console/parts/trouble.tsx";
import { Inspector } from "./inspector.tsx";
import { TurnInspector } from "./turn.tsx";
import { type Row, useSessions } from "./use-sessions.ts";
import "./sessions.css";

function toList() {
  return go(`/sessions${location.search}`);
}

/** The stored conversations, each to read, to continue, to compact and to delete. */
function Page({ params: { session, turn } }: { params: Record<string, string> }) {
  const ofTurn = useSignal<string | undefined>(undefined);
  const inspector = turn ? (
    <TurnInspector key={turn} id={turn} back={toList} found={(of) => (ofTurn.value = of)} />
  ) : (
    session && <Inspector key={session} id={session} back={toList} />
  );
  // A turn is read by REST, but the sessions are not.
  const why = whyNot("session.list");
  if (why !== undefined)
    return (
      <>
        <PageHead title="Sessions" />
        <Split back={toList} list={<Note tone="warning">{why}</Note>} inspector={inspector} />
      </>
    );
  return <Live session={turn ? ofTurn.value : session} inspector={inspector} />;
}

function Live({ session, inspector }: { session: string | undefined; inspector: preact.ComponentChildren }) {
  const sessions = useSessions(inspector !== undefined);
  return (
    <>
      <PageHead title="Sessions" count={countOf(sessions.rows.list.value, "session")} of={sessions.rows} />
      <Split back={toList} usual={34} list={<SessionList {...sessions} selected={session} />} inspector={inspector} />
    </>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: "Session",
    narrow: "first",
    cell: ({ sessionId, preview }) => (
      <span class="two-lines">
        {preview !== null && <span>{preview}</span>}
        <span class={`mono ${preview === null ? "" : "faint"}`} title={sessionId}>
          {shortId(sessionId, 44)}
        </span>
      </span>
    ),
  },
  { name: "Agent", width: "16%", narrow: "second", cell: ({ agentName }) => agentName },
  {
    name: "State",
    width: "116px",
    narrow: "first",
    cell: ({ turnsRunning, turnsQueued }) =>
      turnsRunning > 0 ? (
        <State of="running" />
      ) : turnsQueued > 0 ? (
        <State of="queued" word={`${count(turnsQueued)} queued`} />
      ) : null,
  },
  {
    name: "Messages",
    width: "84px",
    align: "end",
    cell: ({ messageCount }) => (
      <>
        {count(messageCount)}
        <span class="narrow-word">{messageCount === 1 ? " message" : " messages"}</span>
      </>
    ),
  },
  { name: "Tokens", width: "84px", align: "end", narrow: "none", cell: ({ usage }) => count(usage.total) },
  { name: "Last active", width: "96px", align: "end", cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
];

/** The columns that fit next to the inspector. */
const BESIDE = COLUMNS.filter(({ name }) => ["Session", "State", "Last active"].includes(name));

type Listed = ReturnType<typeof useSessions> & { selected: string | undefined };

function SessionList({ rows, names, agentsError, selected }: Listed) {
  const agent = query.value.get("agent");
  const agents = agent && !names.includes(agent) ? [...names, agent] : names;
  return (
    <>
      <Filters names={["agent"]}>
        <FilterSelect name="agent" word="Agent" values={agents.map((name) => [name, name])} />
      </Filters>
      <Failed of={{ error: agentsError }} />
      <LiveTable
        label="Sessions, newest first"
        rows={rows}
        columns={selected === undefined ? COLUMNS : BESIDE}
        keyOf={({ sessionId }) => sessionId}
        hrefOf={({ sessionId }) => hrefOf(`/s/${encodeURIComponent(sessionId)}${location.search}`)}
        selected={selected}
        empty={
          agent ? (
            <Empty title={`The agent ${agent} has no sessions.`}>
              <p class="muted">A session begins with the first message to the agent.</p>
            </Empty>
          ) : (
            <FirstSession agent={names[0]} />
          )
        }
      />
    </>
  );
}

function FirstSession({ agent }: { agent: string | undefined }) {
  return (
    <Empty title="No sessions yet.">
      <p class="muted">A session begins with the first message to an agent:</p>
      <Command text={chatCommand(location.origin, { message: "Hello", user_id: "ada" })} />
      {agent !== undefined && (
        <a class="button primary" href={hrefOf(`/s/${encodeURIComponent(consoleSession(agent))}`)}>
          <Icon name="send" size={14} /> Send a message
        </a>
      )}
    </Empty>
  );
}

export default Page;
