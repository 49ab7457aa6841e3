import { useEffect, useRef } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import { theme, zone } from "#console/app/settings.ts";
import { shortCount } from "#console/lib/format.ts";
import type { UsageRow } from "#console/lib/usage-rows.ts";

const HEIGHT = 200;
/** How far apart the marks of days may be, in seconds. */
const DAY_STEPS = [1, 2, 7, 14, 28].map((days) => days * 86_400);

/** Tokens in and out over time, as stacked bars. The table beside it says the same. */
export function Plot({ rows, step }: { rows: readonly UsageRow[]; step: "hour" | "day" }) {
  const place = useRef<HTMLDivElement>(null);
  const chosen = theme.value;
  useEffect(() => {
    let chart: { destroy(): void; setSize(size: { width: number; height: number }): void } | undefined;
    let isGone = false;
    const watcher = new ResizeObserver(() =>
      chart?.setSize({ width: place.current?.clientWidth ?? 0, height: HEIGHT }),
    );
    void import("uplot").then(({ default: UPlot }) => {
      if (isGone || !place.current) return;
      const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      const names = new Intl.DateTimeFormat("en-GB", {
        ...(step === "day" ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" }),
        ...((step === "day" || zone.peek() === "utc") && { timeZone: "UTC" }),
      });
      const nameOf = (at: number) => names.format(at * 1_000);
      const bars = UPlot.paths.bars?.({ size: [0.7, 48] });
      const axis = {
        stroke: colour("--muted"),
        grid: { stroke: colour("--hairline"), width: 1 },
        ticks: { stroke: colour("--hairline") },
      };
      chart = new UPlot(
        {
          width: place.current.clientWidth,
          height: HEIGHT,
          legend: { show: false },
          cursor: { show: false },
          scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(1, most)] } },
          // Days begin in UTC, and a day has one mark.
          ...(step === "day" && { tzDate: (at: number) => UPlot.tzDate(new Date(at * 1_000), "Etc/UTC") }),
          axes: [
            { ...axis, values: (_, marks) => marks.map(nameOf), ...(step === "day" && { incrs: DAY_STEPS }) },
            { ...axis, size: 52, values: (_, marks) => marks.map(shortCount) },
          ],
          series: [
            {},
            { label: "in and out", fill: colour("--accent"), ...(bars && { paths: bars }), points: { show: false } },
            { label: "in", fill: colour("--edge"), ...(bars && { paths: bars }), points: { show: false } },
          ],
        },
        [
          rows.map(({ key }) => Date.parse(key) / 1_000),
          rows.map(({ total }) => total),
          rows.map(({ input }) => input),
        ],
        place.current,
      );
      watcher.observe(place.current);
    });
    return () => {
      isGone = true;
      watcher.disconnect();
      chart?.destroy();
    };
  }, [rows, chosen]);
  const most = Math.max(...rows.map(({ total }) => total));
  return (
    <figure>
      <div ref={place} class="plot" role="img" aria-label={`Tokens by ${step}, at most ${most} in one`} />
      <figcaption class="legend">
        <span data-of="out" aria-hidden="true" /> out <span data-of="in" aria-hidden="true" /> in
      </figcaption>
    </figure>
  );
}
