import { rpc } from "#console/app/api.ts";
import { whyNot } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import { AskButton } from "#console/parts/dialog.tsx";
import { State } from "#console/parts/state.tsx";
import type { SkillList } from "#generated/clients/typescript/src/rest.ts";

export type InvalidFolder = SkillList["invalid"][number];

/** The folders without a valid skill, with the reasons. */
export function InvalidFolders({ invalid }: { invalid: readonly InvalidFolder[] }) {
  return invalid.length === 0 ? null : (
    <section class="section spaced" aria-labelledby="invalid-skills">
      <header>
        <h2 id="invalid-skills">{plural(invalid.length, "invalid folder")} (not loaded)</h2>
      </header>
      <ul class="recent">
        {invalid.map(({ path, reason }) => (
          <li key={`${path} ${reason}`}>
            <span class="line">
              <State of="failed" word="invalid" quiet /> <span class="mono break">{path}</span>
            </span>
            <p class="break">{reason}</p>
          </li>
        ))}
      </ul>
      <p class="hint">Fix the folder, then Reload.</p>
    </section>
  );
}

/** Reads the folders of skills through the reload of an agent, which reads all of them. Returns the number of invalid folders. */
async function readFolders(): Promise<number> {
  const { agents } = await rpc().agent.list();
  const [first] = agents;
  if (!first) throw new Error("No agent is configured.");
  const { skills, problems } = await rpc().agent.reload({ agentName: first.agentName });
  if (problems.length > 0)
    say(`The configuration has ${plural(problems.length, "problem")}. The previous configuration stays active.`, "bad");
  return skills.skipped.length;
}

/** Asks before the folders are reloaded: new turns use the result. */
export function ReloadSkills({ onRead }: { onRead: () => Promise<void> }) {
  const run = async () => {
    const invalid = await readFolders();
    say(invalid === 0 ? "Reloaded. Every folder is valid." : `Reloaded. ${plural(invalid, "invalid folder")}.`);
    await onRead();
  };
  return (
    <AskButton word="Reload" why={whyNot("system.reload")} title="Reload the skills?" act="Reload" run={run}>
      <p>
        Reloads the folders in <code>skills.dirs</code> and the configuration of the first agent. New turns use the new
        version.
      </p>
    </AskButton>
  );
}
