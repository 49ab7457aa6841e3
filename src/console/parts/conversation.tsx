import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { rest, rpc } from "../app/api.ts";
import { hrefOf } from "../app/router.ts";
import { whyNot } from "../app/session.ts";
import { say } from "../app/toasts.ts";
import { count, duration, plural } from "../lib/format.ts";
import { hasEnded, openTurns, type TranscriptMessage, type TranscriptTurn } from "../lib/transcript.ts";
import type { CalledTool } from "../lib/waterfall.ts";
import { Composer, newKey } from "./composer.tsx";
import { CopyButton } from "./copy.tsx";
import { AskButton } from "./dialog.tsx";
import { Markdown, Plain } from "./markdown.tsx";
import { Segmented } from "./segmented.tsx";
import { State } from "./state.tsx";
import { ClockTime, Running } from "./time.tsx";
import { ToolContent, ToolState } from "./tool-calls.tsx";
import { Failed } from "./trouble.tsx";
import { UsageWords } from "./usage.tsx";
import type { ConversationState } from "./use-conversation.ts";
import "./conversation.css";

/** Markdown or plain text, for every conversation. */
const view = signal<"markdown" | "plain">("markdown");

const VIEWS = [
  ["markdown", "Markdown"],
  ["plain", "Plain text"],
] as const;

export function ViewSwitch() {
  const choose = (one: "markdown" | "plain") => (view.value = one);
  return <Segmented label="Message format" chosen={view.value} choose={choose} choices={VIEWS} />;
}

type Talk = { sessionId: string; agentName: string };
type ConversationOf = Talk & { of: ConversationState };

/** A conversation, oldest first, with the running reply. The state of a turn is below its last message. */
export function Conversation({ of, sessionId, agentName }: ConversationOf) {
  const { transcript, loaded, older, isLoadingOlder, olderError, readOlder, isAtEnd } = of;
  const { messages, turns } = transcript.value;
  const list = useRef<HTMLDivElement>(null);
  const summary = loaded.value.value?.summary ?? null;
  const spoken = new Set(messages.map(({ turnId }) => turnId));
  return (
    <div class="conversation" ref={list}>
      {loaded.value.value && <Failed of={loaded} />}
      {summary !== null && (
        <details class="summary fold">
          <summary>Summary of the compacted messages</summary>
          <Markdown text={summary} />
        </details>
      )}
      <Failed of={{ error: olderError, reload: readOlder }} />
      {older.value !== null && (
        <button
          type="button"
          class="button more"
          disabled={isLoadingOlder.value}
          onClick={() => void keepPlace(list.current, readOlder)}
        >
          {isLoadingOlder.value ? "Loading…" : "Show older messages"}
        </button>
      )}
      {messages.length === 0 && <p class="muted">No messages.</p>}
      <ol class="chat" aria-label="Messages" aria-live="polite" aria-relevant="additions">
        {messages.map((message, n) => (
          <MessageLine key={message.messageId} message={message} agentName={agentName}>
            {messages[n + 1]?.turnId !== message.turnId && turns[message.turnId] && (
              <TurnLine
                turn={turns[message.turnId]}
                question={questionOf(messages, message.turnId)}
                talk={{ sessionId, agentName }}
              />
            )}
          </MessageLine>
        ))}
      </ol>
      {openTurns(transcript.value)
        .filter(({ turnId }) => !spoken.has(turnId))
        .map((turn) => (
          <TurnLine key={turn.turnId} turn={turn} />
        ))}
      <Tail of={transcript.value} isAtEnd={isAtEnd} />
    </div>
  );
}

function questionOf(messages: readonly TranscriptMessage[], turnId: string): string | undefined {
  return messages.find((message) => message.turnId === turnId && message.role === "user")?.text;
}

/** The field for the next message. While a turn runs, its button stops the turn. */
export function Talk({ sessionId, agentName, of }: ConversationOf) {
  const running = openTurns(of.transcript.value).find(({ status }) => status === "running");
  return (
    <div class="session-composer">
      <Composer
        label={`Message to ${agentName}`}
        why={whyNot("agent.sendMessage")}
        send={async (message, idempotencyKey) => {
          of.isAtEnd.current = true;
          await rpc().agent.sendMessage({ agentName, message, sessionId, idempotencyKey });
          await of.loaded.reload();
        }}
        stop={running && (() => rest().turns.cancel(running.turnId))}
        whyNoStop={whyNot("rest")}
      />
    </div>
  );
}

type Line = { message: TranscriptMessage; agentName: string; children: ComponentChildren };

function MessageLine({ message, agentName, children }: Line) {
  const { role, createdAt, compacted, isOpen, hasGap, text, turnId, toolCalls } = message;
  const who = role === "assistant" ? agentName : { user: "User", system: "System", tool: "Tool" }[role];
  return (
    <li class="stack message" data-role={role} data-compacted={compacted}>
      <header class="line">
        <strong>{who}</strong>
        {createdAt && (
          <span class="faint">
            <ClockTime at={createdAt} />
          </span>
        )}
        {compacted && (
          <span class="tag" title="The agent reads the summary instead.">
            compacted
          </span>
        )}
        <span class="message-links">
          <a href={hrefOf(`/t/${turnId}`)}>Turn</a>
          <a href={hrefOf(`/activity?id=${encodeURIComponent(turnId)}`)}>Request</a>
          <CopyButton text={text} what="Copy the message" />
        </span>
      </header>
      {toolCalls && <ToolCalls calls={toolCalls} />}
      <Text text={text} />
      {isOpen && (hasGap || !children) && (
        <p class="running" role="status">
          {hasGap ? "Part of the reply is missing until it completes." : "Writing…"}
        </p>
      )}
      {children}
    </li>
  );
}

/** The tools that the agent called before it answered, folded. */
function ToolCalls({ calls }: { calls: NonNullable<TranscriptMessage["toolCalls"]> }) {
  const failed = calls.filter(({ ok }) => !ok).length;
  return (
    <details class="muted tool-calls">
      <summary>
        {plural(calls.length, "tool call")}
        {failed > 0 && `, ${count(failed)} failed`}
      </summary>
      <ol class="stack">
        {calls.map((call, n) => (
          <li key={n}>
            <ToolLine call={call} />
          </li>
        ))}
      </ol>
    </details>
  );
}

/** A call, whose content is put on the page once it is opened. */
function ToolLine({ call }: { call: CalledTool }) {
  const isOpen = useSignal(false);
  return (
    <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>
        <ToolState ok={call.ok} /> <code>{call.tool}</code> <span class="faint">{duration(call.ms)}</span>
      </summary>
      {isOpen.value && <ToolContent {...call} />}
    </details>
  );
}

/** Longer texts are folded: most of them are logs. */
const FOLDED = 8_000;

function Text({ text }: { text: string }) {
  const whole = useSignal(false);
  const isFolded = text.length > FOLDED && !whole.value;
  const shown = isFolded ? text.slice(0, FOLDED) : text;
  return (
    <>
      {view.value === "plain" ? <Plain text={shown} /> : <Markdown text={shown} />}
      {isFolded && (
        <button type="button" class="link" onClick={() => (whole.value = true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}

type TurnOf = { turn: TranscriptTurn | undefined; question?: string | undefined; talk?: Talk };

/** The state of a turn: of a completed one the model, the tokens and the duration. */
export function TurnLine({ turn, question, talk }: TurnOf) {
  if (!turn) return null;
  const { status, error, attempt, at, model, usage, startedAt, endedAt } = turn;
  const ran = startedAt && endedAt ? Date.parse(endedAt) - Date.parse(startedAt) : undefined;
  const facts = [
    model && <span class="mono">{model}</span>,
    usage && <UsageWords usage={usage} />,
    hasEnded(turn) && ran !== undefined && duration(ran),
  ].filter(Boolean);
  return (
    <div class="line turn-line" data-tone={status === "failed" ? "failed" : undefined}>
      {status !== "completed" && <State of={status} />}
      {!hasEnded(turn) && at && <Running since={at} />}
      {attempt > 1 && <span class="faint">attempt {attempt}</span>}
      {error && (
        <span>
          {error.title}
          {error.detail && `: ${error.detail}`}
        </span>
      )}
      {facts.length > 0 && <span class="faint">{facts.flatMap((fact, n) => (n === 0 ? [fact] : [" · ", fact]))}</span>}
      {status === "failed" && talk && question !== undefined && <TryAgain turn={turn} question={question} {...talk} />}
    </div>
  );
}

/** Sends the message of a failed turn again. A message from outside is replayed instead, because only its request marks it as from outside. */
function TryAgain({ turn, question, sessionId, agentName }: Talk & { turn: TranscriptTurn; question: string }) {
  if (turn.surface === "hooks" || turn.surface === "heartbeat") return null;
  return (
    <AskButton
      icon="refresh-cw"
      word="Try again"
      why={whyNot("agent.sendMessage")}
      title="Send this message again?"
      act="Send again"
      run={async () => {
        await rpc().agent.sendMessage({ agentName, message: question, sessionId, idempotencyKey: newKey() });
        say("Sent again.");
      }}
    >
      <p>
        Starts a new turn for {agentName} with the same text in this session. Skills, model and data of the first
        request are not repeated.
      </p>
      <div class="quote">
        <Plain text={question.length > 400 ? `${question.slice(0, 400)}…` : question} />
      </div>
    </AskButton>
  );
}

/** The element that scrolls around another: the inspector on a wide screen, the page on a narrow one. */
function scrollerOf(element: Element | null): Element {
  const inspector = element?.closest(".split-inspector");
  return inspector && getComputedStyle(inspector).overflowY === "auto"
    ? inspector
    : (document.scrollingElement ?? document.documentElement);
}

/** Keeps the scroll position when messages are added above. */
async function keepPlace(inside: Element | null, read: () => Promise<void>): Promise<void> {
  const scroller = scrollerOf(inside);
  const below = scroller.scrollHeight - scroller.scrollTop;
  await read();
  requestAnimationFrame(() => {
    scroller.scrollTop = scroller.scrollHeight - below;
  });
}

/** The end of the conversation. Follows new messages while the reader is at the end. */
function Tail({ of, isAtEnd }: { of: unknown; isAtEnd: { current: boolean } }) {
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
  }, [of]);
  return <div ref={end} />;
}
