import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import { ActionButton } from "./fields.tsx";
import { Failed } from "./trouble.tsx";
import { useAction } from "./use.ts";

type Composed = {
  label: string;
  /** Sends the text. The same text has the same key until it was sent, so a retry does not send it twice. */
  send: (message: string, idempotencyKey: string) => Promise<unknown>;
  /** Why nothing can be sent now. */
  why?: string | undefined;
  /** Stops the turn that runs; undefined while none runs. */
  stop?: (() => Promise<unknown>) | undefined;
  whyNoStop?: string | undefined;
};

/** The longest pause between the two presses of Escape that stop a turn. */
const TWICE_MS = 800;

/** An idempotency key. */
export function newKey(): string {
  return `console-${Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("")}`;
}

/** A field for a message. Enter sends it, Shift+Enter starts a new line; while a turn runs, Escape twice stops the turn. */
export function Composer({ label, send, why, stop, whyNoStop }: Composed) {
  const text = useSignal("");
  const field = useRef<HTMLTextAreaElement>(null);
  const lastSent = useRef({ text: "", key: "" });
  const hint = useId();
  const action = useAction(async (message: string) => {
    if (lastSent.current.text !== message) lastSent.current = { text: message, key: newKey() };
    await send(message, lastSent.current.key);
    lastSent.current = { text: "", key: "" };
    if (text.peek() === message) text.value = "";
  });
  const stopping = useAction(async () => await stop?.());
  const escapedAt = useRef(0);
  const isEmpty = text.value.trim() === "";
  const submit = () => {
    if (why === undefined && !isEmpty) void action.run(text.peek()).then(() => field.current?.focus());
  };
  return (
    <form
      class="stack composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={field}
        rows={2}
        dir="auto"
        aria-label={label}
        aria-describedby={hint}
        placeholder={label}
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && stop && whyNoStop === undefined) {
            if (event.timeStamp - escapedAt.current < TWICE_MS) void stopping.run();
            escapedAt.current = event.timeStamp;
          }
          // An input method ends a word with Enter, too.
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          submit();
        }}
      />
      <Failed of={action} repeat={submit} />
      <Failed of={stopping} />
      <div class="actions composer-bar">
        <span id={hint} class="faint">
          <kbd>Enter</kbd> sends, <kbd>Shift Enter</kbd> new line
          {stop && whyNoStop === undefined && (
            <span class="of-field">
              , <kbd>Esc Esc</kbd> stops
            </span>
          )}
        </span>
        {stop ? (
          <ActionButton icon="x" why={whyNoStop} runs={stopping}>
            {stopping.isRunning.value ? "Stopping…" : "Stop"}
          </ActionButton>
        ) : (
          <ActionButton
            icon="send"
            kind="primary"
            onClick={submit}
            why={why ?? (isEmpty ? "Write a message first." : undefined)}
            isRunning={action.isRunning.value}
          >
            {action.isRunning.value ? "Sending…" : "Send"}
          </ActionButton>
        )}
      </div>
    </form>
  );
}
