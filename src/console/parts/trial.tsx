import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { headersOfLines, payloadOf } from "#console/lib/webhook-requests.ts";
import type { DryRun } from "#generated/clients/typescript/src/rest.ts";
import { DryRunResult } from "./dry-run-result.tsx";
import { Skeleton } from "./page.tsx";
import { TroubleNote } from "./trouble.tsx";

/** How long nothing is typed before the mappings are tried. */
const PAUSE_MS = 200;

/** A request as it is typed; `name` asks one mapping alone. */
type TrialInput = { headers: string; payload: string; name: string | undefined };
type Trial = { result: DryRun | undefined; error: unknown; isStale: boolean };

/**
 * Tries the mappings with the typed request, once typing pauses. A request that cannot be read leaves the last result, and without one
 * nothing is asked.
 */
export function useTrial(given: TrialInput | undefined): Trial {
  const { headers, payload, name } = given ?? {};
  const shown = useSignal<Trial>({ result: undefined, error: undefined, isStale: false });
  useEffect(() => {
    if (headers === undefined || payload === undefined) return undefined;
    const [head, body] = [headersOfLines(headers), payloadOf(payload)];
    if ("fault" in head || "fault" in body) {
      shown.value = { ...shown.peek(), isStale: shown.peek().result !== undefined };
      return undefined;
    }
    const own = new AbortController();
    const timer = setTimeout(() => {
      const asked = { ...head, body: body.body as Record<string, unknown>, ...(name !== undefined && { name }) };
      rest()
        .mappings.dryRun(asked, { signal: own.signal })
        .then(
          (result) => {
            if (!own.signal.aborted) shown.value = { result, error: undefined, isStale: false };
          },
          (error: unknown) => {
            if (!own.signal.aborted) shown.value = { result: undefined, error, isStale: false };
          },
        );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [headers, payload, name]);
  return shown.value;
}

export function TrialResult({ trial: { result, error, isStale } }: { trial: Trial }) {
  return (
    <>
      {error !== undefined ? (
        <TroubleNote error={error} />
      ) : result ? (
        <DryRunResult result={result} />
      ) : (
        <Skeleton rows={6} />
      )}
      {isStale && <p class="hint">This is the result for the last payload that could be read.</p>}
    </>
  );
}
