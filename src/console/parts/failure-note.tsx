import { failureOf } from "../lib/failure.ts";
import type { Step } from "../lib/steps.ts";
import { Prose } from "./prose.tsx";
import { Note } from "./trouble.tsx";

/** Why a request was refused, or its turn or event failed. Shows nothing for any other request. */
export function FailureNote({ steps, agent }: { steps: readonly Step[]; agent: string | null }) {
  const failure = failureOf(steps, agent);
  if (!failure) return null;
  const { cause, error, detail, advice } = failure;
  return (
    <Note tone="bad">
      <strong>{cause}</strong> {error && <span class="mono muted">{error}</span>}
      {detail && (
        <p>
          <Prose text={detail} />
        </p>
      )}
      {advice && (
        <p class="muted">
          <Prose text={advice} />
        </p>
      )}
    </Note>
  );
}
