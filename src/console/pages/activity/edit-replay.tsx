import { useSignal } from "@preact/signals";
import { hrefOf } from "#console/app/router.ts";
import { mappedBy, prettyBody } from "#console/lib/requests.ts";
import { linesOfHeaders, payloadOf } from "#console/lib/webhook-requests.ts";
import { RequestFields } from "#console/parts/code-field.tsx";
import { Confirm, Dialog } from "#console/parts/dialog.tsx";
import { type Trial, TrialResult, useTrial } from "#console/parts/trial.tsx";
import { Note } from "#console/parts/trouble.tsx";
import type { Delivery, DryRun } from "#generated/clients/typescript/src/rest.ts";

/** The dry run of a recorded request with this payload; empty if no mapping is involved. */
export function useReplayTrial(delivery: Delivery, payload: string | undefined): Trial {
  const asked = mappedBy(delivery);
  const headers = linesOfHeaders(delivery.headers);
  return useTrial(asked && payload !== undefined ? { headers, payload, name: asked.name } : undefined);
}

/** The result of the current mappings for a recorded request. */
export function DryRunDialog({ delivery, close }: { delivery: Delivery; close: () => void }) {
  const payload = prettyBody(delivery);
  const trial = useReplayTrial(delivery, payload);
  return (
    <Dialog title="Dry run" close={close} size="wide">
      <p class="muted">Runs this request through the current mappings. Nothing is started or recorded.</p>
      {payload === undefined ? (
        <Note tone="warning">The body is not JSON, so no mapping can match.</Note>
      ) : (
        <TrialResult trial={trial} />
      )}
      <div class="actions dialog-actions">
        <a class="button" href={hrefOf(`/webhooks?tab=try&build=1&delivery=${delivery.delivery_id}`)}>
          Build a mapping
        </a>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

type Edited = {
  delivery: Delivery;
  send: (body: Record<string, unknown> | unknown[]) => Promise<void>;
  close: () => void;
};

/** The stored body to edit on one side, the result of its dry run on the other. */
export function EditAndReplay({ delivery, send, close }: Edited) {
  const stored = prettyBody(delivery) ?? "{}";
  const payload = useSignal(stored);
  const read = payloadOf(payload.value);
  const trial = useReplayTrial(delivery, payload.value);
  return (
    <Confirm
      title="Edit and replay"
      close={close}
      size="huge"
      isFirm={payload.value !== stored}
      hasFields
      why={"fault" in read ? "The payload is not valid JSON." : undefined}
      act="Replay with this body"
      working="Sending…"
      run={async () => "body" in read && (await send(read.body))}
    >
      <div class="pair-frame">
        <div class="stack pair">
          <div class="stack pair-side">
            <RequestFields payload={payload} rows={18} />
            {payload.value.includes('"[hidden]"') && (
              <p class="hint">Fields shown as [hidden] are sent with their stored values.</p>
            )}
          </div>
          {mappedBy(delivery) ? (
            <div class="stack pair-side" aria-live="polite">
              <TrialResult trial={trial} />
            </div>
          ) : (
            <p class="muted">No mapping uses {delivery.path}.</p>
          )}
        </div>
      </div>
      <p>
        <Effect delivery={delivery} payload={payload.value} result={trial.result} />
      </p>
    </Confirm>
  );
}

type Of = { delivery: Delivery; payload: string; result: DryRun | undefined };

/** The effect of a replay with this payload; `result` is its dry run, where mappings are asked. */
export function Effect({ delivery, payload, result }: Of) {
  if (mappedBy(delivery)) return result ? <MappedEffect result={result} /> : <>Checking the current mappings…</>;
  const read = payloadOf(payload);
  const { agent = delivery.agent, session } = ("body" in read ? read.body : {}) as Record<string, unknown>;
  const who = <strong>{typeof agent === "string" ? agent : "the default agent"}</strong>;
  if (delivery.operation === "hooks.wake") return <>Queues a system event for {who}.</>;
  return (
    <>
      Starts a turn for {who} in {typeof session === "string" ? `the session ${session}` : "a new session"}.
    </>
  );
}

/** The turn that the current mappings start. */
function MappedEffect({ result: { starts, mappings } }: { result: DryRun }) {
  const turn = mappings.find(({ mapping }) => mapping === starts)?.turn;
  if (!turn) return <>No current mapping matches. The request is recorded and starts no turn.</>;
  if (turn.coalesce?.joins)
    return (
      <>
        The request joins the open turn of the mapping {starts} for <strong>{turn.agent}</strong>.
      </>
    );
  return (
    <>
      The mapping {starts} starts a turn for <strong>{turn.agent}</strong> in{" "}
      {turn.session_id === null ? "a new session" : `the session ${turn.session_id}`}.
    </>
  );
}
