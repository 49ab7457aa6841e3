import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { rpc, troubleOf } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import { liveState } from "#console/app/live.ts";
import { hrefOf } from "#console/app/router.ts";
import { copyText } from "#console/app/toasts.ts";
import { openTurns, type Transcript } from "#console/lib/transcript.ts";
import { Composer } from "#console/parts/composer.tsx";
import { Id } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Markdown } from "#console/parts/markdown.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Messages, TurnLine, ViewSwitch } from "#console/parts/transcript.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { UsageWords } from "#console/parts/usage.tsx";
import { Compact } from "./compact.tsx";
import { Delete } from "./delete.tsx";
import { type Details, useTranscript } from "./use-transcript.ts";

/** One conversation: what was said, what is being said, and how to go on. */
export function Inspector({ id, back }: { id: string; back: () => void }) {
  const isAtEnd = useRef(true);
  const conversation = useTranscript(id, () => isAtEnd.current);
  const { transcript, loaded } = conversation;
  const details = loaded.value.value;
  if (transcript.value.isDeleted || (loaded.error.value !== undefined && isGone(loaded.error.value)))
    return <Gone id={id} back={back} wasDeleted={transcript.value.isDeleted} />;
  if (loaded.error.value !== undefined && !details)
    return <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />;
  if (!details) return <Skeleton rows={10} />;
  return <Shown details={details} back={back} isAtEnd={isAtEnd} {...conversation} />;
}

function isGone(error: unknown): boolean {
  return troubleOf(error).name === "session-not-found";
}

export function BackLink({ back }: { back: () => void }) {
  return (
    <button type="button" class="link back" onClick={back}>
      <Icon name="arrow-left" size={14} /> All sessions
    </button>
  );
}

function Gone({ id, back, wasDeleted }: { id: string; back: () => void; wasDeleted: boolean }) {
  return (
    <div class="inspector-head">
      <BackLink back={back} />
      <Note tone="warning">
        <strong>{wasDeleted ? "This session was deleted." : "This session is not kept, or never was."}</strong>
        <p class="mono">{id}</p>
        {!wasDeleted && (
          <p>
            A session is kept for <code>sessions.retention</code> after its last message, and one of a webhook for{" "}
            <code>sessions.webhookRetention</code>. Set them to keep more.
          </p>
        )}
      </Note>
    </div>
  );
}

type ShownOf = ReturnType<typeof useTranscript> & { details: Details; back: () => void; isAtEnd: RefObject<boolean> };

function Shown({ details, back, isAtEnd, transcript, loaded, older, isLoadingOlder, olderError, readOlder }: ShownOf) {
  const { session, summary } = details;
  const asking = useSignal<"compact" | "delete" | undefined>(undefined);
  const close = () => (asking.value = undefined);
  const { messages, turns } = transcript.value;
  const open = openTurns(transcript.value);
  const link = () => location.origin + hrefOf(`/s/${encodeURIComponent(session.sessionId)}`);
  useEffect(
    () => bindKeys([{ key: "y", does: "Copy the link", run: () => void copyText(link(), "Link copied") }]),
    [session.sessionId],
  );
  const spoken = new Set(messages.map(({ turnId }) => turnId));
  return (
    <article aria-label={`Session ${session.sessionId}`} class="session">
      <header class="inspector-head">
        <BackLink back={back} />
        <div class="line">
          <Id id={session.sessionId} most={48} />
          {open.some(({ status }) => status === "running") && <State of="running" />}
        </div>
        <Facts
          of={[
            [
              "Agent",
              <a key="agent" href={hrefOf(`/agents/${encodeURIComponent(session.agentName)}`)}>
                {session.agentName}
              </a>,
            ],
            session.userId !== null && ["User", session.userId],
            session.channel !== null && ["Channel", session.channel],
            ["Last active", <Ago key="at" at={session.updatedAt} />],
            ["Tokens", <UsageWords key="usage" usage={session.usage} />],
          ]}
        />
        <div class="bar-actions">
          <ActionButton onClick={() => (asking.value = "compact")}>
            <Icon name="fold-vertical" size={14} /> Compact
          </ActionButton>
          <ActionButton onClick={() => void copyText(link(), "Link copied")} hotkey="y">
            <Icon name="link" size={14} /> Link
          </ActionButton>
          <ActionButton kind="danger" onClick={() => (asking.value = "delete")}>
            <Icon name="trash-2" size={14} /> Delete
          </ActionButton>
          <ViewSwitch />
        </div>
      </header>
      {loaded.error.value !== undefined && (
        <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
      )}
      {summary !== null && (
        <details class="summary">
          <summary>The summary that the agent reads instead of the compacted messages</summary>
          <Markdown text={summary} />
        </details>
      )}
      {olderError.value !== undefined && <TroubleNote error={olderError.value} retry={() => void readOlder()} />}
      {older.value !== null && (
        <button
          type="button"
          class="button more"
          disabled={isLoadingOlder.value}
          onClick={() => void keepPlace(readOlder)}
        >
          {isLoadingOlder.value ? "Loading…" : "Show older messages"}
        </button>
      )}
      {messages.length === 0 && <p class="muted">No message of this session is kept.</p>}
      <Messages messages={messages} turns={turns} agentName={session.agentName} />
      {open
        .filter(({ turnId }) => !spoken.has(turnId))
        .map((turn) => (
          <TurnLine key={turn.turnId} turn={turn} />
        ))}
      <Tail transcript={transcript.value} isAtEnd={isAtEnd} />
      <div class="session-composer">
        <Composer
          label={`Message to ${session.agentName}`}
          send={async (message, idempotencyKey) => {
            const { agentName, sessionId } = session;
            await rpc().agent.sendMessage({ agentName, message, sessionId, idempotencyKey });
            if (liveState.peek() !== "live") await loaded.reload();
          }}
        />
      </div>
      {asking.value === "compact" && <Compact session={session} close={close} done={() => void loaded.reload()} />}
      {asking.value === "delete" && <Delete session={session} open={open} close={close} />}
    </article>
  );
}

/** The element that scrolls around another: the inspector on a wide screen, the page on a narrow one. */
function scrollerOf(element: Element | null): Element {
  const inspector = element?.closest(".split-inspector");
  return inspector && getComputedStyle(inspector).overflowY === "auto"
    ? inspector
    : (document.scrollingElement ?? document.documentElement);
}

/** Messages that come in above leave what is being read where it is. */
async function keepPlace(read: () => Promise<void>): Promise<void> {
  const scroller = scrollerOf(document.querySelector(".session"));
  const below = scroller.scrollHeight - scroller.scrollTop;
  await read();
  requestAnimationFrame(() => {
    scroller.scrollTop = scroller.scrollHeight - below;
  });
}

/** The end of the conversation. Whoever reads there stays there while it grows; whoever reads above is not moved. */
function Tail({ transcript, isAtEnd }: { transcript: Transcript; isAtEnd: RefObject<boolean> }) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const scroller = scrollerOf(end.current);
    const target = scroller === document.scrollingElement ? document : scroller;
    const watch = () => {
      isAtEnd.current = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
    };
    target.addEventListener("scroll", watch, { passive: true });
    return () => target.removeEventListener("scroll", watch);
  }, []);
  useLayoutEffect(() => {
    if (!isAtEnd.current) return;
    const scroller = scrollerOf(end.current);
    scroller.scrollTop = scroller.scrollHeight;
  }, [transcript]);
  return <div ref={end} />;
}
