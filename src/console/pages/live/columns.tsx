import { duration } from "#console/lib/format.ts";
import type { Work } from "#console/lib/live-stream.ts";
import { State } from "#console/parts/state.tsx";
import type { Column } from "#console/parts/table.tsx";
import { Ago, Running } from "#console/parts/time.tsx";

/** How long a unit of work took, or has been running. */
export function Took({ at, ended_at, outcome, turn_id }: Work) {
  if (ended_at !== null) return <>{duration(Date.parse(ended_at) - Date.parse(at))}</>;
  return turn_id !== null && (outcome === "running" || outcome === "queued") ? <Running since={at} /> : null;
}

/** What was said, or what was called where nothing was. */
export function What({ preview, operation, path }: Work) {
  return (
    <span title={path}>
      {operation === "Heartbeat" && <span class="faint">Heartbeat </span>}
      {preview ?? <span class="mono">{path || operation}</span>}
    </span>
  );
}

export const COLUMNS: readonly Column<Work>[] = [
  {
    name: "What",
    narrow: "first",
    cell: What,
  },
  { name: "State", width: "128px", narrow: "first", cell: ({ outcome }) => <State of={outcome} /> },
  { name: "Agent", width: "12%", cell: ({ agent }) => agent },
  { name: "Source", width: "14%", drop: 1, cell: ({ mapping, caller, address }) => mapping ?? caller ?? address },
  { name: "Took", width: "80px", align: "end", drop: 2, cell: Took },
  { name: "When", width: "88px", align: "end", cell: ({ at }) => <Ago at={at} /> },
];
