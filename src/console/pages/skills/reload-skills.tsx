import { rpc } from "#console/app/api.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import { Confirm } from "#console/parts/dialog.tsx";
import { State } from "#console/parts/state.tsx";
import { Note } from "#console/parts/trouble.tsx";

export type SkippedFolder = { folder: string; reason: string };

/** Reads the folders of skills through the reload of an agent, which alone tells what was left out. */
const readFolders = async (): Promise<readonly SkippedFolder[]> => {
  const { agents } = await rpc().agent.list();
  const [first] = agents;
  if (!first) throw new Error("There is no agent to read them for.");
  const { skills, problems } = await rpc().agent.reload({ agentName: first.agentName });
  if (problems.length > 0)
    say(`The configuration has ${plural(problems.length, "problem")}, so the last good one goes on.`, "bad");
  return skills.skipped;
};

/** Asks before the folders are read again: agents use what is read from then on. */
export const ReloadSkills = ({
  onRead,
  close,
}: {
  onRead: (skipped: readonly SkippedFolder[]) => void;
  close: () => void;
}) => (
  <Confirm
    title="Read the folders again?"
    act="Read them"
    run={async () => {
      const skipped = await readFolders();
      if (skipped.length === 0) say("Read again. Every folder holds a valid skill.");
      onRead(skipped);
    }}
    close={close}
  >
    <p>
      The gateway reads every folder of <code>skills.dirs</code>. Turns that start from then on use what it finds. It
      also reads the first agent's own part of the configuration again.
    </p>
  </Confirm>
);

/** The folders that hold no valid skill, and why. */
export const SkippedFolders = ({ skipped }: { skipped: readonly SkippedFolder[] }) =>
  skipped.length === 0 ? null : (
    <Note tone="warning">
      <strong>{plural(skipped.length, "folder")} left out, because the skill in it is not valid</strong>
      <ul class="skipped">
        {skipped.map(({ folder, reason }) => (
          <li key={`${folder} ${reason}`}>
            <State of="failed" word="invalid" quiet /> <span class="mono break">{folder}</span>: {reason}
          </li>
        ))}
      </ul>
    </Note>
  );
