import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { DryRunResult } from "#console/parts/dry-run-result.tsx";
import { Skeleton } from "#console/parts/page.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { Delivery, DryRun as DryRunReply } from "#generated/clients/rest.ts";

/** What today's mappings would make of a kept request. */
export const DryRun = ({ delivery, close }: { delivery: Delivery; close: () => void }) => {
  const result = useSignal<DryRunReply | undefined>(undefined);
  const body = parsed(delivery);
  const action = useAction(async () => {
    result.value = await rest().call("mappings.dryRun", {
      body: { headers: delivery.headers, body: body as Record<string, unknown> },
    });
  });
  useEffect(() => {
    if (body !== undefined) void action.run();
  }, []);
  return (
    <Dialog title="Dry run" close={close} size="wide">
      <p class="muted">What each mapping would make of this request today. Nothing is started or recorded.</p>
      {body === undefined ? (
        <Note tone="warning">Its body is not kept, or is no JSON: the mappings cannot be tried with it.</Note>
      ) : action.error.value !== undefined ? (
        <TroubleNote error={action.error.value} retry={() => void action.run()} />
      ) : result.value ? (
        <DryRunResult result={result.value} />
      ) : (
        <Skeleton rows={4} />
      )}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
};

const parsed = ({ body, body_encoding }: Delivery): unknown => {
  if (body === null || body_encoding === "base64") return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
};
