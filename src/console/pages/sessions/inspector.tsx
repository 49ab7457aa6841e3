import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { troubleOf } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import { hrefOf } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { copyText } from "#console/app/toasts.ts";
import { agentOfNew } from "#console/lib/ids.ts";
import { openTurns } from "#console/lib/transcript.ts";
import { Conversation, Talk, ViewSwitch } from "#console/parts/conversation.tsx";
import { Id } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { UsageWords } from "#console/parts/usage.tsx";
import { type ConversationState, useConversation } from "#console/parts/use-conversation.ts";
import { Compact, Compacted, type Compaction, Delete } from "./change.tsx";

type Opened = { id: string; back: () => void };

/** One conversation: what was said, what is said now, and the next message. A session of the console may not exist yet. */
export function Inspector({ id, back }: Opened) {
  const conversation = useConversation(id);
  const { transcript, loaded } = conversation;
  const error = loaded.error.value;
  const agent = loaded.value.value?.session.agentName ?? agentOfNew(id);
  const isMissing = error !== undefined && troubleOf(error).name === "session-not-found";
  useEffect(() => bindKeys([{ key: "y", does: "Copy link", run: () => copyLink(id) }]), [id]);
  if (transcript.value.isDeleted || (isMissing && agent === undefined))
    return <Gone id={id} back={back} wasDeleted={transcript.value.isDeleted} />;
  if (error !== undefined && !isMissing && !loaded.value.value)
    return <TroubleNote error={error} retry={() => void loaded.reload()} />;
  if (agent === undefined || (!loaded.value.value && !isMissing)) return <Skeleton rows={10} />;
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

export function BackLink({ back }: { back: () => void }) {
  return (
    <button type="button" class="link back" onClick={back}>
      <Icon name="arrow-left" size={14} /> All sessions
    </button>
  );
}

function Gone({ id, back, wasDeleted }: Opened & { wasDeleted: boolean }) {
  return (
    <div class="inspector-head">
      <BackLink back={back} />
      <Note tone="warning">
        <strong>{wasDeleted ? "This session was deleted." : "This session is not stored."}</strong>
        <p class="mono">{id}</p>
        {!wasDeleted && (
          <p>
            Sessions are deleted <code>sessions.retention</code> after the last message, webhook sessions after{" "}
            <code>sessions.webhookRetention</code>.
          </p>
        )}
      </Note>
    </div>
  );
}

type HeadOf = Opened & { agent: string; conversation: ConversationState };

function Head({ id, agent, back, conversation: { loaded, transcript } }: HeadOf) {
  const asking = useSignal<"compact" | "delete" | undefined>(undefined);
  const compaction = useSignal<Compaction | undefined>(undefined);
  const close = () => (asking.value = undefined);
  const session = loaded.value.value?.session;
  const open = openTurns(transcript.value);
  const missing = session ? undefined : "The session begins with the first message.";
  return (
    <header class="inspector-head">
      <BackLink back={back} />
      <div class="line">
        <Id id={id} most={48} />
        {open.some(({ status }) => status === "running") && <State of="running" />}
      </div>
      <Facts
        of={[
          [
            "Agent",
            <a key="agent" href={hrefOf(`/agents/${encodeURIComponent(agent)}`)}>
              {agent}
            </a>,
          ],
          session?.userId != null && ["User", session.userId],
          session?.channel != null && ["Channel", session.channel],
          session && ["Last active", <Ago key="at" at={session.updatedAt} />],
          session && ["Tokens", <UsageWords key="usage" usage={session.usage} />],
        ]}
      />
      <div class="bar-actions">
        <ActionButton onClick={() => (asking.value = "compact")} why={whyNot("session.compact") ?? missing}>
          <Icon name="fold-vertical" size={14} /> Compact
        </ActionButton>
        <ActionButton onClick={() => copyLink(id)} hotkey="y">
          <Icon name="link" size={14} /> Link
        </ActionButton>
        <ActionButton kind="danger" onClick={() => (asking.value = "delete")} why={whyNot("session.delete") ?? missing}>
          <Icon name="trash-2" size={14} /> Delete
        </ActionButton>
        <ViewSwitch />
      </div>
      {compaction.value && <Compacted result={compaction.value} close={() => (compaction.value = undefined)} />}
      {session && asking.value === "compact" && (
        <Compact
          session={session}
          close={close}
          done={(result) => {
            compaction.value = result;
            void loaded.reload();
          }}
        />
      )}
      {session && asking.value === "delete" && <Delete session={session} open={open} close={close} />}
    </header>
  );
}
