import { plural } from "#console/lib/format.ts";
import { ResultNote } from "#console/parts/trouble.tsx";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

export type Reload = RpcMethods["agent.reload"]["result"];

/** The result of reading an agent's configuration and skills again. */
export function Reloaded({ result, close }: { result: Reload; close: () => void }) {
  const { reloaded, changed, problems, skills } = result;
  return (
    <ResultNote
      tone={!reloaded ? "bad" : problems.length > 0 || skills.skipped.length > 0 ? "warning" : "ok"}
      close={close}
    >
      <strong>{titleOf(result)}</strong>
      {changed.length > 0 && (
        <ul class="reload-list">
          {changed.map((key) => (
            <li key={key} class="mono">
              {key}
            </li>
          ))}
        </ul>
      )}
      {problems.length > 0 && (
        <ul class="reload-list">
          {problems.map(({ file, line, column, key, message }, n) => (
            <li key={`${key} ${n}`}>
              <span class="mono">
                {[file, line, column].filter((part) => part !== null).join(":")}
                {key && ` ${key}`}
              </span>{" "}
              {message}
            </li>
          ))}
        </ul>
      )}
      {skills.skipped.length > 0 && (
        <>
          <p>{plural(skills.skipped.length, "invalid skill folder")} (not loaded):</p>
          <ul class="reload-list">
            {skills.skipped.map(({ folder, reason }) => (
              <li key={folder}>
                <span class="mono">{folder}</span> {reason}
              </li>
            ))}
          </ul>
        </>
      )}
    </ResultNote>
  );
}

function titleOf({ reloaded, changed, skills }: Reload): string {
  if (!reloaded) return "Invalid configuration. The previous configuration stays active.";
  const has = skills.loaded.length > 0 ? `The agent has ${plural(skills.loaded.length, "skill")}.` : "";
  return changed.length === 0 ? `Reloaded. No changes. ${has}` : `Reloaded. Changed settings: ${has}`;
}
