import { rpc } from "#console/app/api.ts";
import { whyNot } from "#console/app/session.ts";
import { BeatNow } from "#console/parts/beat-now.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Failed } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { Agent } from "./pause.tsx";
import { PauseOrResume } from "./pause.tsx";
import type { Reload } from "./reloaded.tsx";

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
      <div class="actions bar-actions">
        <ActionButton icon="refresh-cw" runs={reload} why={whyNot("agent.reload")}>
          {reload.isRunning.value ? "Reloading…" : "Reload"}
        </ActionButton>
        <BeatNow
          agent={agentName}
          why={
            paused ? "The agent is paused." : waitingEvents === 0 ? "No events are waiting for this agent." : undefined
          }
          done={() => void reread()}
        />
        <PauseOrResume agent={agent} reread={reread} />
      </div>
      <Failed of={reload} />
    </>
  );
}
