import type { ConfigProblem } from "#console/lib/config-view.ts";
import { Note } from "#console/parts/trouble.tsx";

type Shown = {
  reloaded: boolean;
  changed: readonly string[];
  needsRestart: readonly string[];
  problems: readonly ConfigProblem[];
};

/** The result of reading the configuration again. */
export function ReloadResult({ reloaded, changed, needsRestart, problems }: Shown) {
  return (
    <Note tone={reloaded ? (needsRestart.length > 0 ? "warning" : "ok") : "bad"}>
      <strong>{wordsOf(reloaded, changed.length + needsRestart.length)}</strong>
      {changed.length > 0 && (
        <p>
          Changed: <span class="mono">{changed.join(", ")}</span>
        </p>
      )}
      {needsRestart.length > 0 && (
        <p>
          Needs a restart: <span class="mono">{needsRestart.join(", ")}</span>
        </p>
      )}
      {problems.length > 0 && (
        <ul class="problems">
          {problems.map(({ file, line, column, message }, n) => (
            <li key={n}>
              <span class="mono">{[file, line, column].filter((part) => part !== null).join(":")}</span> {message}
            </li>
          ))}
        </ul>
      )}
    </Note>
  );
}

function wordsOf(reloaded: boolean, changes: number): string {
  if (!reloaded) return "The file has problems. The gateway keeps the configuration that it has.";
  return changes > 0 ? "The gateway read its configuration again." : "Nothing has changed in the file.";
}
