import { rpc } from "#console/app/api.ts";
import { go } from "#console/app/router.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import type { TranscriptTurn } from "#console/lib/transcript.ts";
import { Confirm } from "#console/parts/dialog.tsx";
import type { Details } from "#console/parts/use-conversation.ts";

type Deleted = { session: Details["session"]; open: readonly TranscriptTurn[]; close: () => void };

/** Asks before a session is deleted, and names what goes with it. */
export function Delete({ session: { sessionId, messageCount, turnsQueued }, open, close }: Deleted) {
  const turns = Math.max(open.length, turnsQueued);
  return (
    <Confirm
      title="Delete this session?"
      act="Delete the session"
      isDanger
      close={close}
      run={async () => {
        const { turnsCancelled } = await rpc().session.delete({ sessionId });
        say(
          turnsCancelled > 0 ? `Deleted. ${plural(turnsCancelled, "turn was", "turns were")} cancelled.` : "Deleted.",
        );
        go(`/sessions${location.search}`);
      }}
    >
      <p class="mono break">{sessionId}</p>
      <ul class="effects">
        <li>{messageCount === 1 ? "Its message is" : `Its ${plural(messageCount, "message")} are`} erased.</li>
        <li>
          {turns > 0
            ? `${plural(turns, "turn that waits or runs is", "turns that wait or run are")} cancelled.`
            : "A turn that waits or runs is cancelled; none is known now."}
        </li>
        <li>The bodies of its deliveries in the flight recorder are erased. What was used stays in Usage.</li>
      </ul>
      <p class="muted">This cannot be undone.</p>
    </Confirm>
  );
}
