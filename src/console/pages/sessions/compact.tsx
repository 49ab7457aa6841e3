import { useSignal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { plural } from "#console/lib/format.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { Field } from "#console/parts/fields.tsx";
import { Facts } from "#console/parts/page.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { RpcMethods } from "#generated/clients/rpc.ts";

type Result = RpcMethods["session.compact"]["result"];
const sizeOf = ({ messages, tokens }: Result["before"]): string =>
  `${plural(messages, "message")}, ${plural(tokens, "token")}`;

/** Has the agent write a summary of the older messages, and shows what that saved. */
export const Compact = ({ id, close }: { id: string; close: () => void }) => {
  const keep = useSignal(20);
  const result = useSignal<Result | undefined>(undefined);
  const action = useAction(async () => {
    result.value = await rpc().session.compact({ sessionId: id, keep: keep.peek() });
  });
  const done = result.value;
  return (
    <Dialog title="Compact this session" close={close}>
      {done ? (
        <>
          <p role="status">
            {done.compacted ? "A summary stands for the older messages now." : (done as { reason?: string }).reason}
          </p>
          <Facts
            of={[
              ["Before", sizeOf(done.before)],
              ["After", sizeOf(done.after)],
            ]}
          />
          <div class="dialog-actions">
            <button type="button" class="button primary" onClick={close}>
              Close
            </button>
          </div>
        </>
      ) : (
        <>
          <p>
            The agent writes a summary of the older messages, and reads that in their place from then on. The messages
            stay readable here.
          </p>
          <Field word="Messages to keep as they are">
            <input
              type="number"
              min={0}
              max={10_000}
              value={keep.value}
              onInput={({ currentTarget }) => {
                keep.value = Number(currentTarget.value);
              }}
            />
          </Field>
          {action.error.value !== undefined && <TroubleNote error={action.error.value} />}
          <div class="dialog-actions">
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
            <button
              type="button"
              class="button primary"
              disabled={action.isRunning.value}
              onClick={() => void action.run()}
            >
              {action.isRunning.value ? "The agent is writing…" : "Compact"}
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
};
