import { useSignal } from "@preact/signals";
import { mappedBy, prettyBody } from "#console/lib/requests.ts";
import { linesOfHeaders, payloadOf } from "#console/lib/webhook-requests.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { ActionButton, Field } from "#console/parts/fields.tsx";
import { TrialResult, useTrial } from "#console/parts/trial.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";

type Edited = {
  delivery: Delivery;
  /** In words: what the replay starts. */
  effect: string;
  send: (body: Record<string, unknown> | unknown[]) => Promise<void>;
  close: () => void;
};

/** The kept body to edit on one side, the result of its dry run on the other. */
export function EditAndReplay({ delivery, effect, send, close }: Edited) {
  const kept = prettyBody(delivery) ?? "{}";
  const payload = useSignal(kept);
  const read = payloadOf(payload.value);
  const fault = "fault" in read ? read.fault : undefined;
  const asked = mappedBy(delivery);
  const trial = useTrial(
    asked && { headers: linesOfHeaders(delivery.headers), payload: payload.value, name: asked.name },
  );
  const action = useAction(async () => {
    if (!("body" in read)) return;
    await send(read.body);
    close();
  });
  return (
    <Dialog title="Edit and replay" close={close} size="huge" isFirm={payload.value !== kept}>
      <div class="pair-frame">
        <div class="pair">
          <div class="pair-side">
            <Field word="Payload" error={fault}>
              <textarea
                class="code"
                rows={18}
                spellcheck={false}
                value={payload.value}
                onInput={({ currentTarget }) => (payload.value = currentTarget.value)}
              />
            </Field>
            {payload.value.includes('"[hidden]"') && (
              <p class="hint">A field that says [hidden] is sent with the secret that was kept.</p>
            )}
          </div>
          {asked ? (
            <div class="pair-side" aria-live="polite" data-stale={trial.isStale}>
              <TrialResult trial={trial} />
            </div>
          ) : (
            <p class="muted">It goes to {delivery.path}, where no mapping is asked.</p>
          )}
        </div>
      </div>
      <p>{asked && trial.result?.starts === null ? "It is recorded, and starts nothing." : effect}</p>
      {action.error.value !== undefined && <TroubleNote error={action.error.value} />}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <ActionButton
          kind="primary"
          onClick={() => void action.run()}
          why={fault === undefined ? undefined : "The payload cannot be read yet."}
          isRunning={action.isRunning.value}
        >
          {action.isRunning.value ? "Sending…" : "Replay with this body"}
        </ActionButton>
      </div>
    </Dialog>
  );
}
