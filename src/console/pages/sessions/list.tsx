import { hrefOf, query } from "#console/app/router.ts";
import { chatCommand } from "#console/lib/curl.ts";
import { count } from "#console/lib/format.ts";
import { consoleSession, shortId } from "#console/lib/ids.ts";
import { Command } from "#console/parts/copy.tsx";
import { FilterSelect, Filters } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { LiveTable } from "#console/parts/live-table.tsx";
import { Empty } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import type { Column } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Failed } from "#console/parts/trouble.tsx";
import type { Row, useSessions } from "./use-sessions.ts";

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

/** The columns that fit beside the inspector. */
const BESIDE = COLUMNS.filter(({ name }) => ["Session", "State", "Last active"].includes(name));

type Listed = ReturnType<typeof useSessions> & { selected: string | undefined };

export function SessionList({ rows, names, agentsError, selected }: Listed) {
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
