import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hrefOf, query, setQuery } from "#console/app/router.ts";
import { clockTime, pretty } from "#console/lib/format.ts";
import { jsonOf, mappedBy } from "#console/lib/requests.ts";
import { linesOfHeaders } from "#console/lib/webhook-requests.ts";
import { RequestFields } from "#console/parts/code-field.tsx";
import { ActionButton, Select } from "#console/parts/fields.tsx";
import { Segmented } from "#console/parts/segmented.tsx";
import { TrialResult, useTrial } from "#console/parts/trial.tsx";
import { Failed, Note } from "#console/parts/trouble.tsx";
import { useAction, useLoaded } from "#console/parts/use.ts";
import { exampleFor, type HookAddress } from "./addresses.ts";
import { Builder, PickValues, useDraft } from "./builder.tsx";

/** A payload with its headers on one side; on the other the result of each mapping, or a mapping that is built from the payload. */
export function Try({ mappings }: { mappings: readonly HookAddress[] }) {
  const headers = useSignal("");
  const payload = useSignal("");
  const isPicking = useSignal(true);
  const draft = useDraft();
  const isBuilding = mappings.length === 0 || query.value.has("build");
  const hasPayload = payload.value.trim() !== "";
  return (
    <section class="section pair-frame" aria-label="Try">
      <div class="actions try-bar">
        <Segmented
          label="Purpose"
          chosen={isBuilding ? "1" : ""}
          choose={(build) => setQuery({ build })}
          choices={[
            ["", "Try the mappings", mappings.length === 0 ? "The configuration has no mapping yet." : undefined],
            ["1", "Build a mapping"],
          ]}
        />
        <Recorded
          take={(request) => {
            headers.value = linesOfHeaders(request.headers);
            payload.value = pretty(request.body);
          }}
        />
        {!isBuilding && <Target mappings={mappings} headers={headers} payload={payload} />}
      </div>
      <div class="stack pair">
        <div class="stack pair-side">
          {isBuilding && hasPayload && (
            <Segmented
              label="View of the request"
              chosen={isPicking.value ? "pick" : "edit"}
              choose={(view) => (isPicking.value = view === "pick")}
              choices={[
                ["pick", "Pick values"],
                ["edit", "Edit"],
              ]}
            />
          )}
          {isBuilding && !hasPayload && <p class="muted">Choose a recorded request, or paste a payload.</p>}
          {isBuilding && hasPayload && isPicking.value ? (
            <PickValues draft={draft} headers={headers.value} payload={payload.value} />
          ) : (
            <RequestFields payload={payload} headers={headers} rows={14} />
          )}
        </div>
        <div class="stack pair-side">
          {isBuilding ? (
            <Builder draft={draft} headers={headers.value} payload={payload.value} />
          ) : (
            <Result headers={headers.value} payload={payload.value} name={query.value.get("target") ?? undefined} />
          )}
        </div>
      </div>
    </section>
  );
}

function Result(given: { headers: string; payload: string; name: string | undefined }) {
  const trial = useTrial(given);
  const match = trial.result?.mappings.find(({ matched }) => matched);
  return (
    <div aria-live="polite">
      <TrialResult trial={trial} />
      {given.name === undefined && trial.result?.starts === null && match && (
        <ActionButton onClick={() => setQuery({ target: match.mapping })}>Try at {match.path}</ActionButton>
      )}
    </div>
  );
}

type TargetOf = Record<"headers" | "payload", { value: string }> & { mappings: readonly HookAddress[] };

/** The path that the payload is tried at, and a button that fills in a payload that matches. */
function Target({ mappings, headers, payload }: TargetOf) {
  const only = mappings.find(({ key }) => key === query.value.get("target"));
  const fill = useAction(async () => {
    const of = only ?? mappings[0];
    if (!of) return;
    const example = await exampleFor(of);
    headers.value = linesOfHeaders(example.headers);
    payload.value = JSON.stringify(example.body, null, 2);
    setQuery({ delivery: undefined });
  });
  return (
    <>
      <label class="filter">
        <span>Sent to</span>
        <Select
          value={only?.key ?? ""}
          choices={[["", "The shared path"], ...mappings.map(({ key, path }) => [key, path] as const)]}
          choose={(target) => setQuery({ target })}
        />
      </label>
      <ActionButton runs={fill}>Fill in an example</ActionButton>
      <Failed of={fill} />
    </>
  );
}

type Take = (request: { headers: Record<string, string>; body: string }) => void;

/** Chooses a recorded webhook, which the address names. */
function Recorded({ take }: { take: Take }) {
  const list = useLoaded((signal) => rest().deliveries.list({ surface: "hooks", limit: 50 }, { signal }));
  const chosen = query.value.get("delivery") ?? "";
  const one = useLoaded(
    async (signal) => (chosen === "" ? undefined : await rest().deliveries.get(chosen, { signal })),
    [chosen],
  );
  const delivery = one.value.value?.delivery_id === chosen ? one.value.value : undefined;
  const isReadable = delivery?.body != null && delivery.body_encoding === "utf-8";
  useEffect(() => {
    if (delivery && isReadable) take({ headers: delivery.headers, body: jsonOf(delivery) ?? delivery.body ?? "" });
  }, [delivery]);
  const deliveries = list.value.value?.deliveries ?? [];
  const choose = (id: string) => {
    const to = deliveries.find(({ delivery_id }) => delivery_id === id);
    setQuery({ delivery: id, ...(to && { target: mappedBy(to)?.name }) });
  };
  return (
    <>
      <label class="filter">
        <span>Recorded</span>
        <select
          value={chosen}
          onFocus={() => void list.reload()}
          onChange={({ currentTarget }) => choose(currentTarget.value)}
        >
          <option value="">Use a recorded request…</option>
          {chosen !== "" && deliveries.every(({ delivery_id }) => delivery_id !== chosen) && (
            <option value={chosen}>{chosen}</option>
          )}
          {deliveries.map(({ delivery_id, path, outcome, at }) => (
            <option key={delivery_id} value={delivery_id}>
              {clockTime(new Date(at).getTime(), false)} {path} · {outcome}
            </option>
          ))}
        </select>
      </label>
      {chosen !== "" && <a href={hrefOf(`/d/${chosen}`)}>Open</a>}
      {delivery && !isReadable && <Note tone="warning">The body of this request is not stored. Choose another.</Note>}
      <Failed of={one} />
    </>
  );
}
