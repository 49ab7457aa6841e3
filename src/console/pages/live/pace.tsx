import { rest } from "#console/app/api.ts";
import { count, duration } from "#console/lib/format.ts";
import { paceOf } from "#console/lib/pace.ts";
import { Spark } from "./spark.tsx";

/** The newest turns, as far as one page of them goes. */
const READ = 500;

export async function readPace(signal: AbortSignal) {
  const { turns, next_cursor } = await rest().turns.list({ limit: READ }, { signal });
  return paceOf(
    turns.map(({ created_at }) => Date.parse(created_at)),
    Date.now(),
    next_cursor !== null,
  );
}

/** How many turns there were a minute: the last hour, or where that was more than a page, the time that the page goes back. */
export function Pace({ spanMs, counts, perMinute }: Awaited<ReturnType<typeof readPace>>) {
  return (
    <figure>
      <figcaption>
        {spanMs === 3_600_000
          ? "Turns a minute, the last hour"
          : `About ${count(Math.round(perMinute))} turns a minute, the last ${duration(spanMs)}`}
      </figcaption>
      <Spark counts={counts} />
    </figure>
  );
}
