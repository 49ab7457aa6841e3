import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rpc } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import { hrefOf } from "#console/app/router.ts";
import { Icon } from "#console/parts/icon.tsx";
import { Facts } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago, Countdown } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { Controls } from "./controls.tsx";
import type { Agent } from "./pause.tsx";
import { PausedNote } from "./pause.tsx";
import { type Reload, Reloaded } from "./reloaded.tsx";
import { TryAgent } from "./try-agent.tsx";

type Shown = { agent: Agent; back: () => void; reread: () => Promise<void> };

/** One agent: what it is, how it does, and a message to it. */
export function Inspector({ agent, back, reread }: Shown) {
  const reload = useSignal<Reload | undefined>(undefined);
  const { agentName, description, backend, model, state, paused, heartbeat, skills, lastTurnAt } = agent;
  const named = encodeURIComponent(agentName);
  useEffect(
    () =>
      bindKeys([
        {
          key: "m",
          does: "Write a message to the agent",
          run: () => document.querySelector<HTMLElement>(".try-agent textarea")?.focus(),
        },
      ]),
    [],
  );
  return (
    <article aria-label={`Agent ${agentName}`}>
      <header class="inspector-head">
        <button type="button" class="link back" onClick={back}>
          <Icon name="arrow-left" size={14} /> All agents
        </button>
        <div class="line">
          <h2>{agentName}</h2>
          {paused && <State of="paused" />}
          {(!paused || state !== "idle") && <State of={state} />}
        </div>
        {description && <p class="agent-description">{description}</p>}
        <Controls agent={agent} reread={reread} onReload={(result) => (reload.value = result)} />
      </header>
      {reload.value && <Reloaded result={reload.value} close={() => (reload.value = undefined)} />}
      <PausedNote agent={agent} />
      <Fault agentName={agentName} state={state} />
      <div class="section">
        <Facts
          of={[
            [
              "Backend",
              <span key="backend" class="mono">
                {backend}
              </span>,
            ],
            [
              "Model",
              model === null ? (
                <span class="faint">the backend chooses</span>
              ) : (
                <span key="model" class="mono">
                  {model}
                </span>
              ),
            ],
            ["Turns", `${agent.running} running, ${agent.queued} queued`],
            [
              "Events",
              <a key="events" href={hrefOf(`/events?agent=${named}`)}>
                {agent.waitingEvents} waiting
              </a>,
            ],
            [
              "Heartbeat",
              heartbeat.every === "off" ? (
                <span class="faint">off</span>
              ) : (
                <span key="beat">
                  every {heartbeat.every}, {paused ? "none while it is paused" : "next "}
                  {!paused && <Countdown to={heartbeat.nextAt} over="now" />}
                </span>
              ),
            ],
            ["Last turn", <Ago key="last" at={lastTurnAt} />],
            [
              "Sessions",
              <a key="sessions" href={hrefOf(`/sessions?agent=${named}`)}>
                Show its sessions
              </a>,
            ],
            [
              "Skills",
              skills.length === 0 ? (
                <span class="faint">none</span>
              ) : (
                <ul key="skills" class="agent-skills">
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
      <TryAgent agentName={agentName} />
    </article>
  );
}

/** The words of the gateway's health about a failing agent. */
function Fault({ agentName, state }: Pick<Agent, "agentName" | "state">) {
  const health = useLoaded((signal) => rpc().system.health({}, { signal }), [state]);
  const part = health.value.value?.parts.find(({ name }) => name === `agents.${agentName}`);
  if (state !== "failing" && (part === undefined || part.status === "ok")) return null;
  return (
    <Note tone="bad">
      <strong>
        {part?.detail ?? (state === "failing" ? "Its backend failed in its last turn." : "The agent is degraded.")}
      </strong>
      {state === "failing" && (
        <p>
          <a href={hrefOf(`/activity?outcome=failed&agent=${encodeURIComponent(agentName)}`)}>
            Show the requests that failed
          </a>
        </p>
      )}
    </Note>
  );
}
