import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rpc, troubleOf } from "#console/app/api.ts";
import { hold, onPush, returns } from "#console/app/live.ts";
import { hrefOf } from "#console/app/router.ts";
import { say } from "#console/app/toasts.ts";
import { count, plural } from "#console/lib/format.ts";
import { emptyTranscript, type Line, type Transcript, withPage, withPush } from "#console/lib/transcript.ts";
import { Chat } from "#console/parts/chat.tsx";
import { Id } from "#console/parts/copy.tsx";
import { Confirm } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { Compact } from "./compact.tsx";
import { Composer } from "./composer.tsx";

type Of = { id: string; back: () => void; changed: () => void };

/** One conversation: its messages as they come, and what can be done with it. */
export const SessionView = ({ id, back, changed }: Of) => {
  const transcript = useSignal<Transcript>(emptyTranscript);
  const cursor = useSignal<string | null>(null);
  const withCompacted = useSignal(false);
  const asText = useSignal(false);
  const asking = useSignal<"compact" | "delete" | undefined>(undefined);
  const loaded = useLoaded(async () => {
    const page = await rpc().session.get({ sessionId: id, limit: 50, includeCompacted: withCompacted.peek() });
    transcript.value = withPage(transcript.peek(), page.messages as Line[]);
    cursor.value = page.nextCursor;
    return page;
  }, [id]);
  useEffect(() => {
    const letGo = hold({ sessions: { [id]: null } });
    const stop = onPush(({ method, params }) => {
      if ((params as { sessionId?: string }).sessionId !== id) return;
      transcript.value = withPush(transcript.peek(), method, params);
      if (method === "session.compacted") void loaded.reload();
    });
    const unsubscribe = returns.subscribe((n) => {
      if (n > 0) void loaded.reload();
    });
    return () => {
      letGo();
      stop();
      unsubscribe();
    };
  }, [id]);
  const older = async () => {
    const page = await rpc().session.get({
      sessionId: id,
      limit: 50,
      includeCompacted: withCompacted.peek(),
      ...(cursor.peek() !== null && { cursor: cursor.peek() as string }),
    });
    transcript.value = withPage(transcript.peek(), page.messages as Line[]);
    cursor.value = page.nextCursor;
  };
  const ask = (what: typeof asking.value) => {
    asking.value = what;
  };
  const error = loaded.error.value;
  if (error !== undefined) return <Gone error={error} id={id} back={back} retry={() => void loaded.reload()} />;
  const session = loaded.value.value?.session;
  if (!session) return <Skeleton rows={8} />;
  const summary = loaded.value.value?.summary;
  return (
    <article aria-label={`Session ${id}`}>
      <header class="inspector-head">
        <button type="button" class="link back" onClick={back}>
          <Icon name="arrow-left" size={14} /> All sessions
        </button>
        <div class="line">
          <Id id={id} most={60} />
        </div>
        <div class="bar-actions">
          <ActionButton onClick={() => ask("compact")}>Compact</ActionButton>
          <ActionButton kind="danger" onClick={() => ask("delete")}>
            <Icon name="trash-2" size={14} /> Delete
          </ActionButton>
          <label class="switch">
            <input
              type="checkbox"
              checked={asText.value}
              onChange={({ currentTarget }) => {
                asText.value = currentTarget.checked;
              }}
            />
            Plain text
          </label>
          <label class="switch">
            <input
              type="checkbox"
              checked={withCompacted.value}
              onChange={({ currentTarget }) => {
                withCompacted.value = currentTarget.checked;
                transcript.value = emptyTranscript;
                void loaded.reload();
              }}
            />
            Compacted messages
          </label>
        </div>
        <Facts
          of={[
            [
              "Agent",
              <a key="a" href={hrefOf(`/agents/${encodeURIComponent(session.agentName)}`)}>
                {session.agentName}
              </a>,
            ],
            session.userId !== null && ["User", session.userId],
            ["Opened", <Ago key="c" at={session.createdAt} />],
            [
              "Size",
              `${plural(session.messageCount, "message")}, ${count(session.usage.input)} tokens in, ${count(session.usage.output)} out`,
            ],
            [
              "Requests",
              <a key="r" href={hrefOf(`/activity?session=${encodeURIComponent(id)}`)}>
                in the flight recorder
              </a>,
            ],
          ]}
        />
      </header>
      {transcript.value.isDeleted && <Note tone="warning">This session was deleted.</Note>}
      {summary && (
        <details class="note">
          <summary>A summary stands for the older messages</summary>
          <p class="plain-text">{summary}</p>
        </details>
      )}
      {cursor.value !== null && (
        <button type="button" class="button more" onClick={() => void older()}>
          Show older
        </button>
      )}
      <Chat transcript={transcript.value} asText={asText.value} />
      <Composer agentName={session.agentName} sessionId={id} isOver={transcript.value.isDeleted} />
      {asking.value === "compact" && <Compact id={id} close={() => ask(undefined)} />}
      {asking.value === "delete" && (
        <Confirm
          title="Delete this session?"
          act="Delete the session"
          isDanger
          close={() => ask(undefined)}
          run={async () => {
            const { turnsCancelled } = await rpc().session.delete({ sessionId: id });
            say(turnsCancelled > 0 ? `Deleted. ${plural(turnsCancelled, "turn")} cancelled.` : "Deleted.");
            changed();
            back();
          }}
        >
          <p>
            Its {plural(session.messageCount, "message")}, its summary and the recorded bodies of its requests are
            erased. Turns that wait or run are cancelled. Usage stays. This cannot be undone.
          </p>
        </Confirm>
      )}
    </article>
  );
};

const Gone = ({ error, id, back, retry }: { error: unknown; id: string; back: () => void; retry: () => void }) =>
  troubleOf(error).name === "session-not-found" ? (
    <>
      <button type="button" class="link back" onClick={back}>
        <Icon name="arrow-left" size={14} /> All sessions
      </button>
      <Note tone="warning">
        <strong>This session is not kept, or never was.</strong>
        <p class="mono plain-text">{id}</p>
        <p>
          <code>sessions.retention</code> and <code>sessions.webhookRetention</code> in the configuration say how long
          sessions are kept.
        </p>
      </Note>
    </>
  ) : (
    <TroubleNote error={error} retry={retry} />
  );
