import { useSignal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { go } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import type { TranscriptTurn } from "#console/lib/transcript.ts";
import { AskButton } from "#console/parts/dialog.tsx";
import { Field, Select } from "#console/parts/fields.tsx";
import { Facts } from "#console/parts/page.tsx";
import { ResultNote } from "#console/parts/trouble.tsx";
import type { Details } from "#console/parts/use-conversation.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

type Change = { id: string; why: string | undefined };
export type Compaction = RpcMethods["session.compact"]["result"];

/** The numbers of newest messages that a compaction can leave. */
const KEEPS = ["0", "1", "2", "5", "10", "20", "50", "100"];

type Compacting = Change & { agent: string; done: (result: Compaction) => void };

/** Asks before a session is compacted. `done` gets the result. */
export function Compact({ id, agent, why, done }: Compacting) {
  const keep = useSignal("20");
  return (
    <AskButton
      icon="fold-vertical"
      word="Compact"
      why={whyNot("session.compact") ?? why}
      title="Compact this session?"
      act="Compact"
      run={async () => done(await rpc().session.compact({ sessionId: id, keep: Number(keep.peek()) }))}
    >
      <p>
        The agent {agent} summarises the older messages and reads only the summary from then on. The messages stay
        visible here. Compaction uses tokens and runs after the queued turns.
      </p>
      <Field word="Newest messages to keep">
        <Select value={keep.value} choices={KEEPS.map((one) => [one, one])} choose={(one) => (keep.value = one)} />
      </Field>
    </AskButton>
  );
}

function sizeOf({ messages, tokens }: Compaction["before"]): string {
  return `${plural(messages, "message")}, ${plural(tokens, "token")}`;
}

/** The history that the agent reads with its next turn, before and after a compaction. */
export function Compacted({ result, close }: { result: Compaction; close: () => void }) {
  const { compacted, reason, before, after } = result;
  return (
    <ResultNote tone={compacted ? "ok" : "warning"} close={close}>
      <strong>{compacted ? "Compacted." : (reason ?? "Nothing to compact.")}</strong>
      {compacted && (
        <Facts
          of={[
            ["Before", sizeOf(before)],
            ["After", `${sizeOf(after)}, including the summary`],
          ]}
        />
      )}
    </ResultNote>
  );
}

type Deleting = Change & { session: Details["session"] | undefined; open: readonly TranscriptTurn[] };

/** Asks before a session is deleted, and names what is deleted with it. */
export function Delete({ id, session, open, why }: Deleting) {
  const { messageCount = 0, turnsQueued = 0 } = session ?? {};
  const turns = Math.max(open.length, turnsQueued);
  return (
    <AskButton
      icon="trash-2"
      word="Delete"
      why={whyNot("session.delete") ?? why}
      title="Delete this session?"
      act="Delete the session"
      isDanger
      run={async () => {
        const { turnsCancelled } = await rpc().session.delete({ sessionId: id });
        say(turnsCancelled > 0 ? `Deleted, ${plural(turnsCancelled, "turn")} cancelled.` : "Deleted.");
        go(`/sessions${location.search}`);
      }}
    >
      <p class="mono break">{id}</p>
      <p>
        This deletes {plural(messageCount, "message")} and the bodies of their requests
        {turns > 0 && `, and cancels ${plural(turns, "queued or running turn")}`}. Usage statistics are not deleted.
        This cannot be undone.
      </p>
    </AskButton>
  );
}
