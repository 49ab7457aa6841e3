import { mappedBy, prettyBody } from "#console/lib/requests.ts";
import { linesOfHeaders } from "#console/lib/webhook-requests.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { TrialResult, useTrial } from "#console/parts/trial.tsx";
import { Note } from "#console/parts/trouble.tsx";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";

/** The result of today's mappings for a kept request. */
export function DryRun({ delivery, close }: { delivery: Delivery; close: () => void }) {
  const payload = prettyBody(delivery);
  return (
    <Dialog title="Dry run" close={close} size="wide">
      <p class="muted">What each mapping would make of this request today. Nothing is started or recorded.</p>
      {payload === undefined ? (
        <Note tone="warning">Its body is no JSON: the mappings cannot be tried with it.</Note>
      ) : (
        <Tried delivery={delivery} payload={payload} />
      )}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Tried({ delivery, payload }: { delivery: Delivery; payload: string }) {
  const headers = linesOfHeaders(delivery.headers);
  return <TrialResult trial={useTrial({ headers, payload, name: mappedBy(delivery)?.name })} />;
}
