import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest, troubleOf } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { say } from "#console/app/toasts.ts";
import { Id } from "#console/parts/copy.tsx";
import { Confirm } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Markdown } from "#console/parts/markdown.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Exact } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";

/** One run of an agent: how it stands, what it answered, where it belongs. */
export const TurnView = ({ id, back }: { id: string; back: () => void }) => {
  const loaded = useLoaded((signal) => rest().call("turns.get", { path: { turn_id: id } }, { signal }), [id]);
  const isAsking = useSignal(false);
  const turn = loaded.value.value;
  const isOpen = turn?.status === "queued" || turn?.status === "running";
  useEffect(() => {
    if (!isOpen) return undefined;
    const timer = setInterval(() => !document.hidden && void loaded.reload(), 1_500);
    return () => clearInterval(timer);
  }, [isOpen]);
  if (!turn && loaded.error.value !== undefined)
    return troubleOf(loaded.error.value).name === "turn-not-found" ? (
      <Note tone="warning">
        <strong>This turn is no longer kept.</strong>
        <p>
          A turn is kept as long as its session: <code>sessions.retention</code> says how long.
        </p>
      </Note>
    ) : (
      <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
    );
  if (!turn) return <Skeleton rows={6} />;
  return (
    <article aria-label={`Turn ${id}`}>
      <header class="inspector-head">
        <button type="button" class="link back" onClick={back}>
          <Icon name="arrow-left" size={14} /> Back
        </button>
        <div class="line">
          <State of={turn.status} /> <Id id={turn.turn_id} most={40} />
        </div>
        <div class="bar-actions">
          <ActionButton
            kind="danger"
            why={isOpen ? undefined : "It has ended."}
            onClick={() => {
              isAsking.value = true;
            }}
          >
            Cancel the turn
          </ActionButton>
        </div>
      </header>
      {turn.error && (
        <Note tone="bad">
          <strong>{turn.error.title}</strong>
          {turn.error.detail && <p>{turn.error.detail}</p>}
        </Note>
      )}
      <Facts
        of={[
          ["Agent", turn.agent],
          turn.model !== null && ["Model", turn.model],
          [
            "Session",
            <Id key="s" id={turn.session_id} href={hrefOf(`/s/${encodeURIComponent(turn.session_id)}`)} most={48} />,
          ],
          turn.delivery_id !== null && [
            "Request",
            <Id key="d" id={turn.delivery_id} href={hrefOf(`/d/${turn.delivery_id}`)} most={40} />,
          ],
          ["Created", <Exact key="c" at={turn.created_at} />],
          ["Started", <Exact key="b" at={turn.started_at} />],
          ["Ended", <Exact key="e" at={turn.ended_at} />],
          ["Attempts", String(turn.attempt)],
          ["Tokens", `${turn.usage?.input ?? 0} in, ${turn.usage?.output ?? 0} out`],
        ]}
      />
      {turn.reply !== null && (
        <section class="section reply">
          <h3>Reply</h3>
          <Markdown text={turn.reply} />
        </section>
      )}
      {isAsking.value && (
        <Confirm
          title="Cancel this turn?"
          act="Cancel the turn"
          isDanger
          close={() => {
            isAsking.value = false;
          }}
          run={async () => {
            await rest().call("turns.cancel", { path: { turn_id: id } });
            say("Cancelled.");
            await loaded.reload();
          }}
        >
          <p>The agent is told to stop. What it has written so far is kept.</p>
        </Confirm>
      )}
    </article>
  );
};
