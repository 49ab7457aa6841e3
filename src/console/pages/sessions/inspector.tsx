import { useSignal } from "@preact/signals";
import { troubleOf } from "#console/app/api.ts";
import { useKeys } from "#console/app/keys.ts";
import { hrefOf } from "#console/app/router.ts";
import { copyText } from "#console/app/toasts.ts";
import { agentOfNew } from "#console/lib/ids.ts";
import { openTurns } from "#console/lib/transcript.ts";
import { Conversation, Talk, ViewSwitch } from "#console/parts/conversation.tsx";
import { AgentLink, Id } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Facts, InspectorHead, Missing, NotStored } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { UsageWords } from "#console/parts/usage.tsx";
import { type ConversationState, useConversation } from "#console/parts/use-conversation.ts";
import { Compact, Compacted, type Compaction, Delete } from "./change.tsx";

type Opened = { id: string; back: () => void };

/** One conversation: its messages, the running reply, and the next message. A session of the console may not exist yet. */
export function Inspector({ id, back }: Opened) {
  const conversation = useConversation(id);
  const { transcript, loaded } = conversation;
  const error = loaded.error.value;
  const agent = loaded.value.value?.session.agentName ?? agentOfNew(id);
  const isMissing = error !== undefined && troubleOf(error).name === "session-not-found";
  useKeys([{ key: "y", does: "Copy link", run: () => copyLink(id) }]);
  if (transcript.value.isDeleted)
    return <NotStored all="All sessions" back={back} title="This session was deleted." id={id} />;
  if (agent === undefined || (!loaded.value.value && !isMissing))
    return (
      <Missing
        of={loaded}
        name="session-not-found"
        all="All sessions"
        back={back}
        title="This session is not stored."
        id={id}
      >
        Sessions are deleted <code>sessions.retention</code> after the last message, webhook sessions after{" "}
        <code>sessions.webhookRetention</code>.
      </Missing>
    );
  return (
    <article aria-label={`Session ${id}`} class="session">
      <Head id={id} agent={agent} back={back} conversation={conversation} />
      <Conversation of={conversation} sessionId={id} agentName={agent} />
      <Talk of={conversation} sessionId={id} agentName={agent} />
    </article>
  );
}

function copyLink(id: string): void {
  void copyText(location.origin + hrefOf(`/s/${encodeURIComponent(id)}`), "Link copied");
}

type HeadOf = Opened & { agent: string; conversation: ConversationState };

function Head({ id, agent, back, conversation: { loaded, transcript } }: HeadOf) {
  const compaction = useSignal<Compaction | undefined>(undefined);
  const session = loaded.value.value?.session;
  const open = openTurns(transcript.value);
  const missing = session ? undefined : "The session begins with the first message.";
  return (
    <InspectorHead all="All sessions" back={back}>
      <div class="line">
        <Id id={id} most={48} />
        {open.some(({ status }) => status === "running") && <State of="running" />}
      </div>
      <Facts
        of={[
          ["Agent", <AgentLink name={agent} />],
          session?.userId != null && ["User", session.userId],
          session?.channel != null && ["Channel", session.channel],
          session && ["Last active", <Ago at={session.updatedAt} />],
          session && ["Tokens", <UsageWords usage={session.usage} />],
        ]}
      />
      <div class="actions bar-actions">
        <Compact
          id={id}
          agent={agent}
          why={missing}
          done={(result) => {
            compaction.value = result;
            void loaded.reload();
          }}
        />
        <ActionButton icon="link" onClick={() => copyLink(id)} hotkey="y">
          Link
        </ActionButton>
        <Delete id={id} session={session} open={open} why={missing} />
        <ViewSwitch />
      </div>
      {compaction.value && <Compacted result={compaction.value} close={() => (compaction.value = undefined)} />}
    </InspectorHead>
  );
}
