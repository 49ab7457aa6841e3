import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import { reasonsOf } from "#console/lib/refusals.ts";
import { Prose } from "#console/parts/prose.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";

/** The most refusals that are counted, and those whose reasons are read. The Activity page has them all. */
const COUNTED = 100;
const READ = 12;
const HOUR_MS = 3_600_000;

/** The refusals of the last hour, the newest with their reasons. */
export async function readRefusals(signal: AbortSignal) {
  const from = new Date(Date.now() - HOUR_MS).toISOString();
  const query = { outcome: "refused", from, limit: COUNTED } as const;
  const { deliveries, next_cursor } = await rest().deliveries.list(query, { signal });
  const refused = await Promise.all(
    deliveries.slice(0, READ).map(({ delivery_id }) => rest().deliveries.get(delivery_id, { signal })),
  );
  return { refused, total: deliveries.length, hasMore: next_cursor !== null };
}

/** The refusals by reason. Nothing at all where there are none. */
export function Refusals({ refused, total, hasMore }: Awaited<ReturnType<typeof readRefusals>>) {
  if (refused.length === 0) return null;
  return (
    <section class="section" aria-labelledby="live-refusals">
      <header>
        <h2 id="live-refusals">Refused in the last hour</h2>
        <div class="actions">
          <a href={hrefOf("/activity?outcome=refused&hours=1")}>
            All {plural(total, "refusal")}
            {hasMore ? " and more" : ""}
          </a>
        </div>
      </header>
      <ul class="refusals">
        {reasonsOf(refused).map(({ reason, detail, count, latest, at }) => (
          <li key={`${reason} ${detail}`}>
            <State of="refused" word={reason} quiet />{" "}
            <span class="muted break">
              <Prose text={detail} />
            </span>{" "}
            <a href={hrefOf(`/d/${latest}`)}>
              {total > refused.length && `${count} of the last ${refused.length}, `}
              {total === refused.length && count > 1 && `${count} times, the last `}
              <Ago at={at} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
