import { plural } from "#console/lib/format.ts";
import { State } from "#console/parts/state.tsx";
import type { SkillList } from "#generated/clients/typescript/src/rest.ts";

export type InvalidFolder = SkillList["invalid"][number];

/** The folders that hold no valid skill, and why. */
export function InvalidFolders({ invalid }: { invalid: readonly InvalidFolder[] }) {
  return invalid.length === 0 ? null : (
    <section class="section invalid-skills" aria-labelledby="invalid-skills">
      <header>
        <h2 id="invalid-skills">Not valid</h2>
        <span class="faint">{plural(invalid.length, "folder")}, which no agent has</span>
      </header>
      <ul>
        {invalid.map(({ path, reason }) => (
          <li key={`${path} ${reason}`}>
            <span class="state-line">
              <State of="failed" word="invalid" quiet /> <span class="mono break">{path}</span>
            </span>
            <p class="break">{reason}</p>
          </li>
        ))}
      </ul>
      <p class="hint">Mend the folder, then read the folders again.</p>
    </section>
  );
}
