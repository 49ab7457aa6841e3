import { rest, rpc } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import { count, plural } from "#console/lib/format.ts";
import { BeatNow } from "#console/parts/beat-now.tsx";
import { AskButton } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Failed, Note } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";
import type { Reload } from "./reloaded.tsx";

export type Agent = RpcMethods["agent.status"]["result"];

type Controlled = { agent: Agent; reread: () => Promise<void>; onReload: (result: Reload) => void };

/** The buttons of an agent. */
export function Controls({ agent, reread, onReload }: Controlled) {
  const { agentName, waitingEvents, paused } = agent;
  const reload = useAction(async () => {
    onReload(await rpc().agent.reload({ agentName }));
    await reread();
  });
  return (
    <>
      <PauseOrResume agent={agent} reread={reread} />
      <BeatNow
        agent={agentName}
        why={
          paused ? "The agent is paused." : waitingEvents === 0 ? "No events are waiting for this agent." : undefined
        }
        done={() => void reread()}
        isSmall
      />
      <ActionButton icon="refresh-cw" name="Reload" runs={reload} why={whyNot("agent.reload")} />
      <Failed of={reload} />
    </>
  );
}

type Paused = { agent: Agent; reread: () => Promise<void> };

/** Pauses or resumes the agent. Only pausing asks for a confirmation: resuming starts work that was already requested. */
function PauseOrResume({ agent, reread }: Paused) {
  return agent.paused ? <Resume agent={agent} reread={reread} /> : <Pause agent={agent} reread={reread} />;
}

function Pause({ agent: { agentName }, reread }: Paused) {
  return (
    <AskButton
      icon="pause"
      word="Pause"
      why={whyNot("rest")}
      title={`Pause the agent ${agentName}?`}
      act="Pause"
      run={async () => {
        await rest().agents.pause(agentName);
        await reread();
      }}
    >
      <p>New messages and events wait until you resume the agent. Running turns continue.</p>
    </AskButton>
  );
}

function Resume({ agent: { agentName }, reread }: Paused) {
  const action = useAction(async () => {
    await rest().agents.resume(agentName);
    say("Resumed. Waiting turns start now.");
    await reread();
  });
  return (
    <>
      <ActionButton icon="play" kind="primary" why={whyNot("rest")} runs={action}>
        Resume
      </ActionButton>
      <Failed of={action} />
    </>
  );
}

/** The number of queued turns, as a link to their requests. */
export function QueueLink({ agent: { agentName, queued } }: { agent: Agent }) {
  const words = `${count(queued)} queued`;
  return queued === 0 ? (
    words
  ) : (
    <a href={hrefOf(`/activity?outcome=queued&agent=${encodeURIComponent(agentName)}`)}>{words}</a>
  );
}

/** How long the agent has been paused, and the number of its waiting turns and events. */
export function PausedNote({ agent }: { agent: Agent }) {
  return agent.paused ? (
    <Note tone="warning">
      <strong>
        Paused <Ago at={agent.pausedAt} />.
      </strong>{" "}
      <QueueLink agent={agent} />, {plural(agent.waitingEvents, "event")} waiting.
    </Note>
  ) : null;
}
