import { useSignal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { plural } from "#console/lib/format.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { ActionButton, Field } from "#console/parts/fields.tsx";
import { Facts } from "#console/parts/page.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { Details } from "#console/parts/use-conversation.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

type Result = RpcMethods["session.compact"]["result"];
type Compacted = { session: Details["session"]; close: () => void; done: () => void };

/** Asks before a session is compacted, and shows what came of it. */
export function Compact({ session: { sessionId, agentName }, close, done }: Compacted) {
  const keep = useSignal("20");
  const result = useSignal<Result | undefined>(undefined);
  const action = useAction(async () => {
    result.value = await rpc().session.compact({ sessionId, keep: Number(keep.peek()) });
    done();
  });
  const isNumber = /^\d{1,6}$/.test(keep.value);
  return (
    <Dialog
      title={!result.value ? "Compact this session?" : result.value.compacted ? "Compacted" : "Not compacted"}
      close={close}
    >
      {result.value ? (
        <Outcome result={result.value} />
      ) : (
        <>
          <p>
            The agent {agentName} writes a summary, which takes the place of the older messages when it reads the
            conversation. They stay readable here. This uses tokens, and waits until the turns before it have ended.
          </p>
          <Field word="Messages to keep as they are" error={isNumber ? undefined : "Write a number."}>
            <input
              inputMode="numeric"
              value={keep.value}
              onInput={({ currentTarget }) => (keep.value = currentTarget.value.trim())}
            />
          </Field>
        </>
      )}
      {action.error.value !== undefined && <TroubleNote error={action.error.value} />}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          {result.value ? "Close" : "Cancel"}
        </button>
        {!result.value && (
          <ActionButton
            kind="primary"
            onClick={() => void action.run()}
            isRunning={action.isRunning.value}
            why={isNumber ? undefined : "Write how many messages to keep."}
          >
            {action.isRunning.value ? "Compacting…" : "Compact"}
          </ActionButton>
        )}
      </div>
    </Dialog>
  );
}

function sizeOf({ messages, tokens }: Result["before"]): string {
  return `${plural(messages, "message")}, ${plural(tokens, "token")}`;
}

/** The history that the agent reads with its next turn, before and after. */
function Outcome({ result: { compacted, reason, before, after } }: { result: Result }) {
  return (
    <div role="status" class="section">
      <p>
        {compacted
          ? "A summary stands for the older messages now."
          : (reason ?? "The session was short enough already.")}
      </p>
      <Facts
        of={[
          ["Before", sizeOf(before)],
          ["After", compacted ? `${sizeOf(after)}, with the summary` : "the same"],
        ]}
      />
    </div>
  );
}
