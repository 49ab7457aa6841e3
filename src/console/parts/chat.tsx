import { useSignal } from "@preact/signals";
import { hrefOf } from "../app/router.ts";
import type { Line, Transcript } from "../lib/transcript.ts";
import { Markdown } from "./markdown.tsx";
import { State } from "./state.tsx";
import { ClockTime } from "./time.tsx";
import { Note } from "./trouble.tsx";

const WHO = { user: "User", assistant: "Agent", system: "System", tool: "Tool" } as const;

/** The messages of a conversation, oldest first, and the turns that are under way or ended badly. */
export const Chat = ({ transcript: { lines, turns }, asText }: { transcript: Transcript; asText: boolean }) => (
  <>
    <ol class="chat" aria-label="Messages" aria-live="polite" aria-relevant="additions">
      {lines.map((line) => (
        <Message key={line.messageId} line={line} asText={asText} />
      ))}
    </ol>
    {[...turns].map(([turnId, { status, why }]) => (
      <TurnNote key={turnId} turnId={turnId} status={status} why={why} />
    ))}
  </>
);

const TurnNote = ({ turnId, status, why }: { turnId: string; status: string; why: string | undefined }) =>
  status === "failed" ? (
    <Note tone="bad">
      <a href={hrefOf(`/t/${turnId}`)}>The turn failed</a>
      {why && <p>{why}</p>}
    </Note>
  ) : (
    <p class="muted">
      <State of={status} quiet /> <a href={hrefOf(`/t/${turnId}`)}>turn</a>
    </p>
  );

const Message = ({ line, asText }: { line: Line; asText: boolean }) => {
  const { role, text, createdAt, compacted, isOpen, turnId } = line;
  const isFolded = useSignal(role === "tool");
  return (
    <li data-role={role} data-compacted={compacted}>
      <div class="chat-head">
        <strong>{WHO[role] ?? role}</strong>
        <ClockTime at={createdAt} />
        {compacted && <span>compacted</span>}
        {turnId && role === "assistant" && <a href={hrefOf(`/t/${turnId}`)}>turn</a>}
        {role === "tool" && (
          <button
            type="button"
            class="link"
            aria-expanded={!isFolded.value}
            onClick={() => {
              isFolded.value = !isFolded.value;
            }}
          >
            {isFolded.value ? "Show" : "Hide"}
          </button>
        )}
      </div>
      {!isFolded.value && (
        <div class={isOpen ? "caret" : ""}>
          {asText || isOpen || role === "tool" ? <div class="plain-text">{text}</div> : <Markdown text={text} />}
        </div>
      )}
    </li>
  );
};
