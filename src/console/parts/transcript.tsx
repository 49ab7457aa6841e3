import { signal, useSignal } from "@preact/signals";
import { hrefOf } from "../app/router.ts";
import { count, duration, plural } from "../lib/format.ts";
import { hasEnded, type TranscriptMessage, type TranscriptTurn } from "../lib/transcript.ts";
import { CopyButton } from "./copy.tsx";
import { Markdown, Plain } from "./markdown.tsx";
import { State } from "./state.tsx";
import { ClockTime, Running } from "./time.tsx";
import "./transcript.css";

/** Markdown or plain text, for every conversation. */
const view = signal<"markdown" | "plain">("markdown");

export function ViewSwitch() {
  return (
    <div class="segmented" role="group" aria-label="How messages are shown">
      {(["markdown", "plain"] as const).map((one) => (
        <button key={one} type="button" aria-pressed={view.value === one} onClick={() => (view.value = one)}>
          {one === "markdown" ? "Markdown" : "Plain text"}
        </button>
      ))}
    </div>
  );
}

type Conversation = {
  messages: readonly TranscriptMessage[];
  turns: Readonly<Record<string, TranscriptTurn>>;
  agentName: string;
};

/** A conversation, oldest first. What a turn came to stands below its last message. */
export function Messages({ messages, turns, agentName }: Conversation) {
  return (
    <ol class="chat" aria-label="Messages" aria-live="polite" aria-relevant="additions">
      {messages.map((message, n) => (
        <MessageLine
          key={message.messageId}
          message={message}
          agentName={agentName}
          turn={messages[n + 1]?.turnId === message.turnId ? undefined : turns[message.turnId]}
        />
      ))}
    </ol>
  );
}

type Line = { message: TranscriptMessage; turn: TranscriptTurn | undefined; agentName: string };

function MessageLine({ message, turn, agentName }: Line) {
  const { role, createdAt, compacted, isOpen, hasGap, text, turnId, toolCalls } = message;
  const who = role === "assistant" ? agentName : { user: "User", system: "System", tool: "Tool" }[role];
  return (
    <li class="message" data-role={role} data-compacted={compacted}>
      <header>
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
      {isOpen && (hasGap || !turn) && (
        <p class="message-open" role="status">
          {hasGap ? "Some of it was left out. The whole appears when it is finished." : "Writing…"}
        </p>
      )}
      {turn && <TurnLine turn={turn} />}
    </li>
  );
}

/** The tools that the agent called before it answered, folded. */
function ToolCalls({ calls }: { calls: NonNullable<TranscriptMessage["toolCalls"]> }) {
  const failed = calls.filter(({ ok }) => !ok).length;
  return (
    <details class="tool-calls">
      <summary>
        {plural(calls.length, "tool call")}
        {failed > 0 && `, ${count(failed)} failed`}
      </summary>
      <ol>
        {calls.map(({ tool, ok, ms, reason }, n) => (
          <li key={n}>
            <State of={ok ? "ok" : "failed"} />
            <code>{tool}</code>
            <span class="faint">{duration(ms)}</span>
            {reason && <span>{reason}</span>}
          </li>
        ))}
      </ol>
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

/** The state of a turn, where its messages do not show it. */
export function TurnLine({ turn }: { turn: TranscriptTurn }) {
  const { status, error, attempt, at } = turn;
  if (status === "completed") return null;
  return (
    <p class="turn-line">
      <State of={status} />
      {!hasEnded(turn) && at && <Running since={at} />}
      {attempt > 1 && <span class="faint">attempt {attempt}</span>}
      {error && (
        <span>
          {error.title}
          {error.detail && `: ${error.detail}`}
        </span>
      )}
    </p>
  );
}
