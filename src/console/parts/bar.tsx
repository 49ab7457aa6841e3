import type { Axis, Segment } from "../lib/bar.ts";
import { duration } from "../lib/format.ts";

type BarOf = { segments: readonly Segment[]; axis: Axis; label?: string };

/** Segments at their places on an axis. Several bars with one axis form a waterfall. A cut segment is dotted. */
export function Bar({ segments, axis, label = segments.map(wordsOf).join(", ") }: BarOf) {
  return (
    <div class="bar" role="img" aria-label={label}>
      {segments.map((segment) => {
        const [from, to] = [axis.place(segment.from), axis.place(segment.to)];
        return (
          <div
            key={`${segment.word} ${segment.from}`}
            data-tone={segment.tone}
            data-cut={axis.isCut(segment)}
            style={{ insetInlineStart: `min(${from * 100}%, 100% - 2px)`, width: `calc(${(to - from) * 100}% - 1px)` }}
            title={wordsOf(segment)}
          />
        );
      })}
    </div>
  );
}

/** The names of the segments of a bar, with their lengths. */
export function BarLegend({ segments, axis }: Pick<BarOf, "segments" | "axis">) {
  return (
    <div class="line muted bar-legend">
      {segments.map((segment) => (
        <span key={`${segment.word} ${segment.from}`} data-tone={segment.tone}>
          <span class="bar-sign" data-cut={axis.isCut(segment)} /> {segment.word}{" "}
          <span class="mono">{axis.isCut(segment) ? `⋯ ${lengthOf(segment)} ⋯` : lengthOf(segment)}</span>
        </span>
      ))}
    </div>
  );
}

function lengthOf({ from, to }: Segment): string {
  return duration(to - from);
}
function wordsOf(segment: Segment): string {
  return `${segment.word} ${lengthOf(segment)}`;
}
