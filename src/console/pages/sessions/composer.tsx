import { useSignal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";

/** Goes on with a conversation. What comes of it is pushed. */
export const Composer = ({
  agentName,
  sessionId,
  isOver,
}: {
  agentName: string;
  sessionId: string;
  isOver: boolean;
}) => {
  const text = useSignal("");
  const action = useAction(async () => {
    await rpc().agent.sendMessage({ agentName, sessionId, message: text.peek() });
    text.value = "";
  });
  const send = () => {
    if (text.value.trim() !== "") void action.run();
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {action.error.value !== undefined && <TroubleNote error={action.error.value} />}
      <textarea
        aria-label="Message"
        rows={2}
        placeholder={`Write to ${agentName}`}
        disabled={isOver}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <div class="form-row">
        <button
          type="submit"
          class="button primary"
          disabled={isOver || action.isRunning.value || text.value.trim() === ""}
        >
          {action.isRunning.value ? "Sending…" : "Send"}
        </button>
        <span class="hint">Enter sends, Shift and Enter begins a line.</span>
      </div>
    </form>
  );
};
