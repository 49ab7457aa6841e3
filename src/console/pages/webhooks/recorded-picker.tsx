import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hrefOf, query, setQuery } from "#console/app/router.ts";
import { clockTime } from "#console/lib/format.ts";
import { mappedBy } from "#console/lib/requests.ts";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";

/** Chooses a webhook that was recorded. Which one stands in the address. */
export function RecordedPicker({
  take,
}: {
  take: (request: { headers: Record<string, string>; text: string }) => void;
}) {
  const list = useLoaded((signal) => rest().deliveries.list({ surface: "hooks", limit: 50 }, { signal }));
  const why = useSignal<string | undefined>(undefined);
  const chosen = query.value.get("delivery") ?? "";
  const one = useLoaded(
    async (signal) => (chosen === "" ? undefined : await rest().deliveries.get(chosen, { signal })),
    [chosen],
  );
  const delivery = one.value.value;
  useEffect(() => {
    why.value = undefined;
    if (!delivery || delivery.delivery_id !== chosen) return;
    const { headers, body, body_encoding } = delivery;
    if (body === null || body_encoding === "base64") why.value = "The body of this one is not kept. Take another.";
    else take({ headers, text: pretty(body) });
  }, [delivery]);
  const deliveries = list.value.value?.deliveries ?? [];
  // It is tried where it was sent to.
  const choose = (id: string) => {
    const to = deliveries.find(({ delivery_id }) => delivery_id === id);
    setQuery({ delivery: id, ...(to && { target: mappedBy(to)?.name }) });
  };
  const isListed = deliveries.some(({ delivery_id }) => delivery_id === chosen);
  return (
    <>
      <label class="filter">
        <span>Recorded</span>
        <select
          value={chosen}
          onFocus={() => void list.reload()}
          onChange={({ currentTarget }) => choose(currentTarget.value)}
        >
          <option value="">Take one…</option>
          {chosen !== "" && !isListed && <option value={chosen}>{chosen}</option>}
          {deliveries.map(({ delivery_id, path, outcome, at }) => (
            <option key={delivery_id} value={delivery_id}>
              {clockTime(new Date(at).getTime(), false)} {path} · {outcome}
            </option>
          ))}
        </select>
      </label>
      {chosen !== "" && <a href={hrefOf(`/d/${chosen}`)}>Open it</a>}
      {why.value !== undefined && <Note tone="warning">{why.value}</Note>}
      {one.error.value !== undefined && <TroubleNote error={one.error.value} />}
    </>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
