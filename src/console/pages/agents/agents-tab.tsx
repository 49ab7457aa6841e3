import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { gathered, hold, onReturn } from "#console/app/live.ts";
import { go, hrefOf } from "#console/app/router.ts";
import { count, plural } from "#console/lib/format.ts";
import { type Head, Pending } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago, Countdown } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { Inspector } from "./inspector.tsx";
import "./agents.css";
import type { Agent } from "./controls.tsx";

/** The agents are read again at most this often, however much happens. */
const REREAD_MS = 1_000;
/** The most failing agents whose last error is read. */
const MOST_ASKED = 20;

/** A number; zero is shown faint. */
function Amount({ value, word }: { value: number; word: string }) {
  return (
    <span class={value === 0 ? "faint" : ""}>
      {count(value)}
      <span class="narrow-word"> {word}</span>
    </span>
  );
}

/** An agent, with the reason for which it is degraded. */
type Row = Agent & { fault: string | undefined };

const COLUMNS: readonly Column<Row>[] = [
  {
    name: "Agent",
    narrow: "first",
    cell: ({ agentName, description, fault }) => (
      <span class="two-lines">
        <strong>{agentName}</strong>
        {(fault ?? description) && (
          <span class={fault ? "fault" : "faint"} title={fault ?? description ?? ""}>
            {fault ?? description}
          </span>
        )}
      </span>
    ),
  },
  {
    name: "State",
    width: "96px",
    narrow: "first",
    cell: ({ state, paused }) => <State of={paused ? "paused" : state} />,
  },
  {
    name: "Backend",
    width: "22%",
    drop: 2,
    cell: ({ backend, model }) => (
      <>
        <span class="mono">{backend}</span> {model !== null && <span class="faint mono">{model}</span>}
      </>
    ),
  },
  { name: "Running", width: "72px", align: "end", cell: ({ running }) => <Amount value={running} word="running" /> },
  { name: "Queued", width: "72px", align: "end", cell: ({ queued }) => <Amount value={queued} word="queued" /> },
  {
    name: "Events",
    width: "80px",
    drop: 1,
    align: "end",
    narrow: "none",
    cell: ({ waitingEvents }) => <Amount value={waitingEvents} word="events" />,
  },
  {
    name: "Next heartbeat",
    width: "124px",
    drop: 1,
    align: "end",
    narrow: "none",
    cell: ({ heartbeat: { every, nextAt } }) =>
      every === "off" ? <span class="faint">off</span> : <Countdown to={nextAt} />,
  },
  { name: "Last turn", width: "88px", align: "end", cell: ({ lastTurnAt }) => <Ago at={lastTurnAt} /> },
];

function toList() {
  return go("/agents");
}

type TabOf = {
  /** The name of the agent that is shown. */
  selected: string | undefined;
  head: Signal<Head | undefined>;
};

/** The agents with their current work, and one agent to send messages to and control. */
export function Agents({ selected, head }: TabOf) {
  const loaded = useLoaded((signal) => rpc().agent.list({}, { signal }));
  const faults = useFaults(loaded.value.value?.agents);
  const agents = loaded.value.value?.agents.map((agent) => ({ ...agent, fault: faults.get(agent.agentName) }));
  useAgentPushes(agents, loaded.reload);
  const shown = agents?.find(({ agentName }) => agentName === selected);
  const count = agents && plural(agents.length, "agent");
  useEffect(() => {
    head.value = { at: loaded.at, reload: loaded.reload, count };
  }, [count]);
  return (
    <>
      <Pending of={loaded} rows={4} />
      {agents && (
        <Split
          back={toList}
          list={
            <Table
              label="Agents, in configuration order"
              rows={agents}
              columns={COLUMNS}
              keyOf={({ agentName }) => agentName}
              hrefOf={({ agentName }) => hrefOf(`/agents/${encodeURIComponent(agentName)}`)}
              selected={selected}
            />
          }
          inspector={
            shown ? (
              <Inspector key={shown.agentName} agent={shown} fault={shown.fault} back={toList} reread={loaded.reload} />
            ) : (
              selected && <NoAgent name={selected} />
            )
          }
        />
      )}
    </>
  );
}

function NoAgent({ name }: { name: string }) {
  return (
    <Note tone="warning">
      <strong>
        No agent is named <span class="mono">{name}</span>.
      </strong>
      <p>
        Agents are configured in <code>agents</code>. Sessions of removed agents are{" "}
        <a href={hrefOf(`/sessions?agent=${encodeURIComponent(name)}`)}>still listed</a>.
      </p>
    </Note>
  );
}

/** The error of the last failed turn of an agent, if the identity may read turns. */
async function lastErrorOf(agent: string): Promise<readonly [agent: string, error: string] | undefined> {
  const { turns } = await rest()
    .turns.list({ agent, status: "failed", limit: 1 })
    .catch(() => ({ turns: [] }));
  const { title, detail } = turns[0]?.error ?? {};
  return title === undefined ? undefined : [agent, detail ? `${title}: ${detail}` : title];
}

/** The reasons for degraded agents, from the health of the gateway. */
function useFaults(agents: readonly Agent[] = []): ReadonlyMap<string, string> {
  const failing = agents.filter(({ state }) => state === "failing").map(({ agentName }) => agentName);
  const health = useLoaded(
    async (signal) => {
      if (agents.length === 0) return [];
      const { parts } = await rpc().system.health({}, { signal });
      return parts.filter(({ name, status }) => name.startsWith("agents.") && status !== "ok");
    },
    [agents.length === 0, failing.join("\n")],
  );
  const errors = useLoaded(() => Promise.all(failing.slice(0, MOST_ASKED).map(lastErrorOf)), [failing.join("\n")]);
  return new Map([
    ...failing.map((name) => [name, "The last turn failed."] as const),
    ...(health.value.value ?? []).map(({ name, detail }) => [name.slice(7), detail ?? "Degraded."] as const),
    ...(errors.value.value ?? []).flatMap((one) => (one ? [one] : [])),
  ]);
}

/** Reads the agents again when something happens to one of them. */
function useAgentPushes(agents: readonly Agent[] | undefined, reread: () => Promise<void>): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const names = agents?.map(({ agentName }) => agentName) ?? [];
  useEffect(() => {
    if (names.length === 0) return undefined;
    const releases = [hold({ agents: names }), hold({ gateway: null })];
    const later = () => {
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        void reread();
      }, REREAD_MS);
    };
    const stop = gathered(({ method }) => /^(turn|event|heartbeat|agent|system|health)\./.test(method), later);
    const unsubscribe = onReturn(() => void reread());
    return () => {
      for (const release of releases) release();
      stop();
      unsubscribe();
      clearTimeout(timer.current);
      timer.current = undefined;
    };
  }, [names.join("\n")]);
}
