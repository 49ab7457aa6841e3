import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { query, setQuery } from "#console/app/router.ts";
import { copyText, say } from "#console/app/toasts.ts";
import { headersOfLines, linesOfHeaders, payloadOf } from "#console/lib/webhook-requests.ts";
import { ActionButton, Field } from "#console/parts/fields.tsx";
import { Body, matchOf, placeOf } from "#console/parts/json.tsx";
import { TrialResult, useTrial } from "#console/parts/trial.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { DryRun } from "#generated/clients/typescript/src/rest.ts";
import { exampleFor, type HookAddress } from "./addresses.ts";
import { RecordedPicker } from "./recorded-picker.tsx";

/** A payload with its headers on one side, what each mapping makes of it on the other, while it is typed. */
export function Tester({ mappings }: { mappings: readonly HookAddress[] }) {
  const headers = useSignal("");
  const payload = useSignal("");
  const view = useSignal<"edit" | "pick">("edit");
  const target = query.value.get("target") ?? "";
  const only = mappings.find(({ key }) => key === target);
  const parsedHeaders = headersOfLines(headers.value);
  const parsed = payloadOf(payload.value);
  const trial = useTrial({ headers: headers.value, payload: payload.value, name: only?.name });
  const fill = useAction(async (of: HookAddress) => {
    const example = await exampleFor(of);
    headers.value = linesOfHeaders(example.headers);
    payload.value = JSON.stringify(example.body, null, 2);
    setQuery({ delivery: undefined });
  });
  const example = only ?? mappings[0];
  // A reader who comes from a mapping wants to be here.
  useEffect(() => {
    if (target !== "") document.getElementById("try")?.scrollIntoView({ block: "start" });
  }, [target]);
  const canPick = "body" in parsed && payload.value.trim() !== "";
  return (
    <section class="section tester pair-frame" id="try" aria-labelledby="try-title">
      <header>
        <h2 id="try-title">Try a payload</h2>
        <span class="muted">Nothing is started or recorded.</span>
      </header>
      <div class="tester-bar">
        <RecordedPicker
          take={(request) => {
            headers.value = linesOfHeaders(request.headers);
            payload.value = request.text;
          }}
        />
        <label class="filter">
          <span>Sent to</span>
          <select value={only?.key ?? ""} onChange={({ currentTarget }) => setQuery({ target: currentTarget.value })}>
            <option value="">The shared path</option>
            {mappings.map(({ key, path }) => (
              <option key={key} value={key}>
                {path}
              </option>
            ))}
          </select>
        </label>
        {example && (
          <ActionButton onClick={() => void fill.run(example)} isRunning={fill.isRunning.value}>
            Fill in an example
          </ActionButton>
        )}
      </div>
      {fill.error.value !== undefined && <TroubleNote error={fill.error.value} />}
      <div class="pair">
        <div class="pair-side">
          <div class="tester-head">
            <div class="segmented" role="group" aria-label="What a click in the payload does">
              <button type="button" aria-pressed={view.value === "edit"} onClick={() => (view.value = "edit")}>
                Edit
              </button>
              <button
                type="button"
                aria-pressed={view.value === "pick"}
                aria-disabled={!canPick}
                title={canPick ? "A click on a value copies where it stands" : "Paste a payload first"}
                onClick={() => {
                  if (canPick) view.value = "pick";
                }}
              >
                Pick values
              </button>
            </div>
          </div>
          {view.value === "pick" && canPick ? (
            <Pick text={payload.value} />
          ) : (
            <>
              <Field word="Payload" error={"fault" in parsed ? parsed.fault : undefined}>
                <textarea
                  class="code"
                  rows={14}
                  spellcheck={false}
                  placeholder={'{\n  "ref": "refs/heads/main"\n}'}
                  value={payload.value}
                  onInput={({ currentTarget }) => (payload.value = currentTarget.value)}
                />
              </Field>
              <Field word="Headers" error={"fault" in parsedHeaders ? parsedHeaders.fault : undefined}>
                <textarea
                  class="code"
                  rows={3}
                  spellcheck={false}
                  placeholder="x-github-event: push"
                  value={headers.value}
                  onInput={({ currentTarget }) => (headers.value = currentTarget.value)}
                />
              </Field>
            </>
          )}
        </div>
        <div class="pair-side" aria-live="polite" data-stale={trial.isStale}>
          <TrialResult trial={trial} />
          {only === undefined && trial.result?.starts === null && <SignedOnly result={trial.result} />}
        </div>
      </div>
    </section>
  );
}

/** Leads from a signed mapping that matches to its own path. */
function SignedOnly({ result }: { result: DryRun }) {
  const match = result.mappings.find(({ matched }) => matched);
  if (!match) return null;
  return (
    <div>
      <ActionButton onClick={() => setQuery({ target: match.mapping })}>Try it at {match.path}</ActionButton>
    </div>
  );
}

/** The payload as a tree. A click copies where a value stands, as a template or as `match` has it. */
function Pick({ text }: { text: string }) {
  const copies = useSignal<"place" | "match">("place");
  const pick = (path: (string | number)[], value: unknown) => {
    if (path.some((step) => String(step).includes(".") || step === ""))
      return say("A key with a dot in it cannot be reached by a path.", "bad");
    const text = copies.peek() === "place" ? placeOf(path) : matchOf(path, value);
    return void copyText(text, `Copied ${text}`);
  };
  return (
    <>
      <div class="tester-head">
        <span class="muted">A click copies</span>
        <div class="segmented" role="group" aria-label="What a click copies">
          <button type="button" aria-pressed={copies.value === "place"} onClick={() => (copies.value = "place")}>
            <span class="mono">{"{body.…}"}</span>
          </button>
          <button type="button" aria-pressed={copies.value === "match"} onClick={() => (copies.value = "match")}>
            Match line
          </button>
        </div>
      </div>
      <Body text={text} what="the payload" pick={pick} />
    </>
  );
}
