import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";

/** The recorded requests that brought an event. */
export function EventRequests({ id }: { id: string }) {
  const loaded = useLoaded((signal) => rest().deliveries.list({ id, limit: 20 }, { signal }), [id]);
  const deliveries = loaded.value.value?.deliveries;
  return (
    <section class="section reply" aria-labelledby="event-requests">
      <h3 id="event-requests">Request</h3>
      {loaded.error.value !== undefined && (
        <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
      )}
      {!deliveries && loaded.error.value === undefined && <Skeleton rows={1} />}
      {deliveries?.length === 0 && <p class="muted">The request is no longer stored.</p>}
      <ul>
        {deliveries?.map(({ delivery_id, path, outcome, caller, at }) => (
          <li key={delivery_id}>
            <State of={outcome} quiet />{" "}
            <a class="mono" href={hrefOf(`/d/${delivery_id}`)}>
              {path}
            </a>{" "}
            <span class="muted">
              {caller} <Ago at={at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
