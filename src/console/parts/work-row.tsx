import { now } from "../app/clock.ts";
import { duration } from "../lib/format.ts";
import type { Work } from "../lib/live-stream.ts";
import { ReplaySign, State } from "./state.tsx";
import type { Column } from "./table.tsx";
import { Ago } from "./time.tsx";

/** The columns of a list of work: each row is a sentence. */
export const WORK_COLUMNS: readonly Column<Work>[] = [
  { name: "Request", narrow: "first", cell: (work) => <Said work={work} /> },
  { name: "Agent", width: "12%", drop: 2, cell: ({ agent }) => agent },
  {
    name: "Source",
    width: "14%",
    drop: 1,
    cell: ({ mapping, caller, address }) => mapping ?? caller ?? <span class="faint">{address}</span>,
  },
  { name: "Took", width: "88px", drop: 3, align: "end", cell: tookOf },
  { name: "When", width: "88px", align: "end", cell: ({ at }) => <Ago at={at} /> },
];

/** Shown for a request without a message: the operation or, if it does not name the mapping or the schedule, the path. */
export function placeOf({ operation, path }: Pick<Work, "operation" | "path">): string {
  return operation === "" || /^(?:hooks|schedules)\./.test(operation) ? path : operation;
}

function Said({ work }: { work: Work }) {
  const { outcome, preview, operation, path, error, replay_of, announcement } = work;
  const title = [operation, path, error && (error.detail ?? error.name)].filter(Boolean).join("\n");
  return (
    <span class="work" title={title}>
      <State of={outcome} quiet />
      <span class="cut">
        {preview ? <bdi>{preview}</bdi> : <span class="mono">{placeOf(work)}</span>}
        {error && <span class="faint"> {outcome === "refused" ? error.name : (error.detail ?? error.name)}</span>}
      </span>
      {replay_of && <ReplaySign />}
      {announcement && <ReplySign {...announcement} />}
    </span>
  );
}

/** A reply that has not reached its channel; with `isWhole` every state, with the channel and the reason. */
export function ReplySign({ channel, state, reason, isWhole }: NonNullable<Work["announcement"]> & { isWhole?: true }) {
  if (!isWhole && state !== "failed" && state !== "retrying") return null;
  const word = state === "failed" ? "not delivered" : state;
  const words = [`to ${channel}`, reason].filter(Boolean).join(": ");
  return (
    <span title={`Reply ${words}`}>
      <State of={state} word={isWhole ? `reply ${word}` : word} quiet />
      {isWhole && <span class="muted"> {words}</span>}
    </span>
  );
}

/** How long it took, or has been running. */
export function tookOf({ outcome, at, ended_at }: Work) {
  if (ended_at === null && outcome !== "running") return null;
  return <Took at={at} ended_at={ended_at} />;
}

function Took({ at, ended_at }: Pick<Work, "at" | "ended_at">) {
  const since = new Date(at).getTime();
  if (ended_at !== null) return <>{duration(Math.max(0, new Date(ended_at).getTime() - since))}</>;
  return <span class="faint">{duration(Math.max(0, Math.floor((now.value - since) / 1_000) * 1_000))}</span>;
}
