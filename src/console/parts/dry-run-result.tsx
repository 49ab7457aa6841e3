import type { DryRun } from "#generated/clients/rest.ts";
import { Facts } from "./page.tsx";
import { State } from "./state.tsx";

/** What each mapping makes of a request: the message it renders, or the pair that failed. */
export const DryRunResult = ({ result: { starts, mappings } }: { result: DryRun }) => (
  <div class="dry-run">
    <p role="status">
      {starts === null ? (
        mappings.some(({ matched }) => matched) ? (
          <>
            <State of="unmatched" word="Nothing would be started" /> What matches takes signed requests at its own path
            alone.
          </>
        ) : (
          <>
            <State of="unmatched" word="No mapping matches" /> Nothing would be started.
          </>
        )
      ) : (
        <>
          <State of="ok" word={starts} /> would start a turn.
        </>
      )}
    </p>
    <ol>
      {mappings.map(({ mapping, path, matched, failed, message, turn }) => (
        <li key={mapping}>
          <div class="line">
            <State of={matched ? "ok" : "unmatched"} word={matched ? "matches" : "does not match"} quiet />
            <strong>{mapping}</strong> <span class="mono faint">{path}</span>
          </div>
          {failed && (
            <Facts
              of={[
                [
                  "Path",
                  <span key="path" class="mono">
                    {failed.path}
                  </span>,
                ],
                [
                  "Expected",
                  <span key="expected" class="mono">
                    {JSON.stringify(failed.expected)}
                  </span>,
                ],
                [
                  "Found",
                  <span key="found" class="mono">
                    {failed.found === null ? "nothing" : JSON.stringify(failed.found)}
                  </span>,
                ],
              ]}
            />
          )}
          {message !== null && message !== undefined && <pre class="step-text">{message}</pre>}
          {turn && (
            <Facts
              of={[
                ["Agent", turn.agent],
                ["Session", turn.session_id ?? "a new one"],
                turn.model !== null && ["Model", turn.model],
                turn.announce_to !== null && ["Announced to", turn.announce_to],
              ]}
            />
          )}
        </li>
      ))}
    </ol>
  </div>
);
