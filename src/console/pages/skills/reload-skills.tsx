import { rpc } from "#console/app/api.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import { Confirm } from "#console/parts/dialog.tsx";

/** Reads the folders of skills through the reload of an agent, which reads all of them. Answers how many are not valid. */
async function readFolders(): Promise<number> {
  const { agents } = await rpc().agent.list();
  const [first] = agents;
  if (!first) throw new Error("There is no agent to read them for.");
  const { skills, problems } = await rpc().agent.reload({ agentName: first.agentName });
  if (problems.length > 0)
    say(`The configuration has ${plural(problems.length, "problem")}, so the last good one goes on.`, "bad");
  return skills.skipped.length;
}

/** Asks before the folders are read again: agents use what is read from then on. */
export function ReloadSkills({ onRead, close }: { onRead: () => Promise<void>; close: () => void }) {
  return (
    <Confirm
      title="Read the folders again?"
      act="Read them"
      run={async () => {
        const invalid = await readFolders();
        say(
          `Read again. ${invalid === 0 ? "Every folder holds a valid skill." : `Not valid: ${plural(invalid, "folder")}.`}`,
        );
        await onRead();
      }}
      close={close}
    >
      <p>
        The gateway reads every folder of <code>skills.dirs</code>. Turns that start from then on use what it finds. It
        also reads the first agent's own part of the configuration again.
      </p>
    </Confirm>
  );
}
