import { useSignal } from "@preact/signals";
import { useKeys } from "#console/app/keys.ts";
import { go, hrefOf } from "#console/app/router.ts";
import { count } from "#console/lib/format.ts";
import { consoleSession, newConsoleSession } from "#console/lib/ids.ts";
import { Icon } from "#console/parts/icon.tsx";
import { Facts, InspectorHead } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago, Countdown } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { type Agent, Controls, PausedNote, QueueLink } from "./controls.tsx";
import { type Reload, Reloaded } from "./reloaded.tsx";

type Shown = {
  agent: Agent;
  /** Why the agent is degraded. */
  fault: string | undefined;
  back: () => void;
  reread: () => Promise<void>;
};

/** One agent: what it is, how it does, and a message to it. */
export function Inspector({ agent, fault, back, reread }: Shown) {
  const reload = useSignal<Reload | undefined>(undefined);
  const { agentName, description, backend, model, state, paused, heartbeat, skills, lastTurnAt } = agent;
  const named = encodeURIComponent(agentName);
  const chat = `/s/${encodeURIComponent(consoleSession(agentName))}`;
  useKeys([{ key: "m", does: "Send a message", run: () => go(chat) }]);
  return (
    <article aria-label={`Agent ${agentName}`}>
      <InspectorHead all="All agents" back={back}>
        <div class="line">
          <h2>{agentName}</h2>
          {paused && <State of="paused" />}
          {(!paused || state !== "idle") && <State of={state} />}
        </div>
        {description && <p class="muted plain-text">{description}</p>}
        <div class="actions bar-actions">
          <a class="button primary" href={hrefOf(chat)}>
            <Icon name="send" size={14} /> Send a message <kbd aria-hidden="true">m</kbd>
          </a>
          <a class="button" href={hrefOf(`/s/${encodeURIComponent(newConsoleSession(agentName))}`)}>
            New session
          </a>
          <Controls agent={agent} reread={reread} onReload={(result) => (reload.value = result)} />
        </div>
      </InspectorHead>
      {reload.value && <Reloaded result={reload.value} close={() => (reload.value = undefined)} />}
      <PausedNote agent={agent} />
      <Fault agentName={agentName} fault={fault} />
      <div class="section">
        <Facts
          of={[
            ["Backend", <span class="mono">{backend}</span>],
            ["Model", model === null ? <span class="faint">backend default</span> : <span class="mono">{model}</span>],
            [
              "Turns",
              <>
                {count(agent.running)} running, <QueueLink agent={agent} />
              </>,
            ],
            ["Events", <a href={hrefOf(`/events?agent=${named}`)}>{agent.waitingEvents} waiting</a>],
            [
              "Heartbeat",
              heartbeat.every === "off" ? (
                <span class="faint">off</span>
              ) : (
                <>
                  every {heartbeat.every}, {paused ? "paused" : "next "}
                  {!paused && <Countdown to={heartbeat.nextAt} over="now" />}
                </>
              ),
            ],
            ["Last turn", <Ago at={lastTurnAt} />],
            ["Sessions", <a href={hrefOf(`/sessions?agent=${named}`)}>View sessions</a>],
            [
              "Skills",
              skills.length === 0 ? (
                <span class="faint">none</span>
              ) : (
                <ul class="line">
                  {skills.map((skill) => (
                    <li key={skill}>
                      <a class="mono" href={hrefOf(`/skills/${encodeURIComponent(skill)}`)}>
                        {skill}
                      </a>
                    </li>
                  ))}
                </ul>
              ),
            ],
          ]}
        />
      </div>
    </article>
  );
}

function Fault({ agentName, fault }: Pick<Agent, "agentName"> & Pick<Shown, "fault">) {
  return fault === undefined ? null : (
    <Note tone="bad">
      <strong>{fault}</strong>
      <p>
        <a href={hrefOf(`/activity?outcome=failed&agent=${encodeURIComponent(agentName)}`)}>View failed requests</a>
      </p>
    </Note>
  );
}
