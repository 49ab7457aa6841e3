import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import { reasonsOf } from "#console/lib/refusals.ts";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { Row } from "../activity/page.tsx";

/** The most refusals whose reasons are read; the Activity page has the rest. */
const READ = 12;

/** The refusals of the last hour, by reason. Nothing at all where there are none. */
export const Refusals = ({ refused }: { refused: readonly Row[] }) => {
  const ids = refused.slice(0, READ).map(({ delivery_id }) => delivery_id);
  const loaded = useLoaded(
    (signal) =>
      Promise.all(ids.map((delivery_id) => rest().call("deliveries.get", { path: { delivery_id } }, { signal }))),
    [ids.join()],
  );
  if (ids.length === 0) return null;
  return (
    <section class="section" aria-labelledby="live-refusals">
      <header>
        <h2 id="live-refusals">Refused in the last hour</h2>
        <div class="actions">
          <a href={hrefOf("/activity?outcome=refused&hours=1")}>All {plural(refused.length, "refusal")}</a>
        </div>
      </header>
      <ul class="refusals">
        {reasonsOf(loaded.value.value ?? []).map(({ reason, detail, count, latest, at }) => (
          <li key={reason}>
            <State of="refused" word={reason} quiet /> <span class="muted break">{detail}</span>{" "}
            <a href={hrefOf(`/d/${latest}`)}>
              {count > 1 ? `${count} times, the last ` : ""}
              <Ago at={at} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
};
