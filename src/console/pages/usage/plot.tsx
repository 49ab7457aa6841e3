import { useSignal } from "@preact/signals";
import { zone } from "#console/app/settings.ts";
import { count, shortCount } from "#console/lib/format.ts";
import { topOf, type UsageRow } from "#console/lib/usage-rows.ts";

/** The most words below the bars. */
const MOST_WORDS = 8;

/** Tokens in and out over time, as stacked bars. The pointer and the arrow keys show the numbers of each. */
export function Plot({ rows, step }: { rows: readonly UsageRow[]; step: "hour" | "day" }) {
  const last = rows.length - 1;
  const chosen = useSignal(last);
  const at = Math.min(chosen.value, last);
  const top = topOf(Math.max(...rows.map(({ total }) => total)));
  const every = Math.ceil(rows.length / MOST_WORDS);
  const names = new Intl.DateTimeFormat("en-GB", {
    ...(step === "day" ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" }),
    // Days start in UTC.
    ...((step === "day" || zone.value === "utc") && { timeZone: "UTC" }),
  });
  const nameOf = (row: UsageRow | undefined) => names.format(Date.parse(row?.key ?? ""));
  const words = `${nameOf(rows[at])}: ${count(rows[at]?.output ?? 0)} out, ${count(rows[at]?.input ?? 0)} in`;
  return (
    <figure class="plot">
      <figcaption class="actions muted legend">
        <span data-of="out" aria-hidden="true" /> out <span data-of="in" aria-hidden="true" /> in
        <output>{words}</output>
      </figcaption>
      <div
        class="plot-bars"
        role="slider"
        tabIndex={0}
        aria-label={`Tokens by ${step}`}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={words}
        data-top={shortCount(top)}
        data-half={shortCount(top / 2)}
        onKeyDown={(event) => {
          const move = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
          if (move === 0) return;
          event.preventDefault();
          chosen.value = Math.min(last, Math.max(0, at + move));
        }}
      >
        {rows.map((row, n) => (
          <div key={row.key} class="plot-bar" data-chosen={n === at} onPointerEnter={() => (chosen.value = n)}>
            <span data-of="out" style={{ height: `${(row.output / top) * 100}%` }} />
            <span data-of="in" style={{ height: `${(row.input / top) * 100}%` }} />
            {n % every === Math.floor((every - 1) / 2) && n + every / 2 <= rows.length && <small>{nameOf(row)}</small>}
          </div>
        ))}
      </div>
    </figure>
  );
}
