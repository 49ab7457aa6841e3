import { useSignal } from "@preact/signals";
import { now } from "../app/clock.ts";
import { axisOf, segmentsOf } from "../lib/bar.ts";
import { count, duration } from "../lib/format.ts";
import type { Step } from "../lib/steps.ts";
import { type Row, rowsOf } from "../lib/waterfall.ts";
import { Bar } from "./bar.tsx";
import { ToolContent } from "./tool-calls.tsx";
import "./waterfall.css";

/** The rows that are shown at first. */
const FIRST_ROWS = 100;

/** The parts of a turn as bars on one time axis. A tool call opens to its arguments and result. */
export function Waterfall({ steps, isOpen }: { steps: readonly Step[]; isOpen: boolean }) {
  const until = isOpen ? now.value : undefined;
  const segments = segmentsOf(steps, until);
  const axis = axisOf(segments);
  const began = segments[0]?.from ?? 0;
  const isWhole = useSignal(false);
  const rows = rowsOf(steps, until);
  const shown = isWhole.value ? rows : rows.slice(0, FIRST_ROWS);
  return (
    <table class="waterfall">
      <caption class="sr-only">The parts of the turn on one time axis</caption>
      <colgroup>
        <col />
        <col />
        <col />
      </colgroup>
      <thead class="sr-only">
        <tr>
          <th scope="col">Part</th>
          <th scope="col">Time</th>
          <th scope="col">Duration</th>
        </tr>
      </thead>
      <tbody>
        {shown.map((row, n) => (
          <Part key={`${row.word} ${n}`} row={row} axis={axis} began={began} />
        ))}
        {shown.length < rows.length && (
          <tr>
            <td colSpan={3}>
              <button type="button" class="link" onClick={() => (isWhole.value = true)}>
                {count(rows.length - shown.length)} more
              </button>
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

type PartOf = { row: Row; axis: ReturnType<typeof axisOf>; began: number };

function Part({ row, axis, began }: PartOf) {
  const open = useSignal(false);
  const { word, from, to, isInside, call } = row;
  const took = duration(call?.ms ?? to - from);
  return (
    <>
      <tr data-inside={isInside} data-tone={row.tone}>
        <th scope="row" title={word}>
          {call ? (
            <button type="button" class="link" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
              <code>{word}</code>
            </button>
          ) : (
            word
          )}
          {call && !call.ok && <span class="waterfall-failed"> failed</span>}
        </th>
        <td>
          <Bar segments={[row]} axis={axis} label={`${word}: starts after ${duration(from - began)}, takes ${took}`} />
        </td>
        <td class="mono">{axis.isCut(row) ? `⋯ ${took} ⋯` : took}</td>
      </tr>
      {call && open.value && (
        <tr>
          <td colSpan={3}>
            <ToolContent {...call} />
          </td>
        </tr>
      )}
    </>
  );
}
