import type { DryRun } from "#generated/clients/typescript/src/rest.ts";
import { Facts } from "./page.tsx";
import { State } from "./state.tsx";

type Tried = DryRun["mappings"][number];

/** For each mapping the message that it renders, or the pair that failed. */
export function DryRunResult({ result: { starts, mappings } }: { result: DryRun }) {
  const matching = mappings.filter(({ matched }) => matched);
  const failing = mappings.filter(({ matched }) => !matched);
  return (
    <div class="dry-run">
      <p role="status">
        {starts !== null ? (
          <>
            <State of="ok" word={starts} /> would start a turn.
          </>
        ) : matching.length > 0 ? (
          <>
            <State of="unmatched" word="Nothing would be started" /> What matches takes signed requests at its own path
            alone.
          </>
        ) : (
          <>
            <State of="unmatched" word="No mapping matches" /> Nothing would be started.
          </>
        )}
      </p>
      {matching.map((tried) => (
        <Match key={tried.mapping} tried={tried} />
      ))}
      {failing.length > 0 && <Failing tried={failing} />}
    </div>
  );
}

/** A mapping that matches: its message, and where that would go. */
function Match({ tried: { mapping, path, message, turn } }: { tried: Tried }) {
  return (
    <section class="dry-run-match" aria-label={`${mapping} matches`}>
      <div class="line">
        <State of="ok" word="matches" quiet />
        <strong>{mapping}</strong>
        <span class="mono faint">{path}</span>
      </div>
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
    </section>
  );
}

/** The mappings that do not match, each with the first pair that failed. */
function Failing({ tried }: { tried: readonly Tried[] }) {
  return (
    <div class="scroll-x">
      <table class="tried" aria-label="Mappings that do not match">
        <thead>
          <tr>
            <th scope="col">Does not match</th>
            <th scope="col">Path</th>
            <th scope="col">Expected</th>
            <th scope="col">Found</th>
          </tr>
        </thead>
        <tbody>
          {tried.map(({ mapping, path, failed }) => (
            <tr key={mapping}>
              <td title={path} data-name="Mapping">
                {mapping}
              </td>
              <td class="mono" data-name="Path">
                {failed?.path}
              </td>
              <td class="mono" data-name="Expected">
                {failed?.expected.map((one) => JSON.stringify(one)).join(" or ")}
              </td>
              <td class="mono" data-name="Found">
                {failed?.found === null || failed?.found === undefined ? (
                  <span class="faint">nothing</span>
                ) : (
                  JSON.stringify(failed.found)
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
