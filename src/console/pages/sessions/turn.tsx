import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest, troubleOf } from "#console/app/api.ts";
import { gathered, hold, onReturn } from "#console/app/live.ts";
import { hrefOf } from "#console/app/router.ts";
import { isConsole } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import { duration } from "#console/lib/format.ts";
import { Id } from "#console/parts/copy.tsx";
import { Confirm } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Markdown, Plain } from "#console/parts/markdown.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Exact, Running } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { UsageWords } from "#console/parts/usage.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { Turn } from "#generated/clients/typescript/src/rest.ts";
import { BackLink } from "./inspector.tsx";

/** Without the live stream, a turn that goes on is read again this often. */
const REREAD_MS = 2_000;

/** One run of an agent: its state, and what came of it. */
export function TurnInspector({ id, back }: { id: string; back: () => void }) {
  const loaded = useLoaded((signal) => rest().turns.get(id, { signal }), [id]);
  const turn = loaded.value.value;
  const isOpen = turn?.status === "queued" || turn?.status === "running";
  useEffect(() => {
    if (!turn || !isOpen) return undefined;
    if (!isConsole.peek()) {
      const timer = setInterval(() => !document.hidden && void loaded.reload(), REREAD_MS);
      return () => clearInterval(timer);
    }
    const release = hold({ sessions: { [turn.session_id]: null } });
    const stop = gathered(
      ({ method, params }) => method.startsWith("turn.") && (params as { turnId?: string }).turnId === id,
      () => void loaded.reload(),
    );
    const unsubscribe = onReturn(() => void loaded.reload());
    return () => {
      release();
      stop();
      unsubscribe();
    };
  }, [isOpen, turn?.session_id]);
  if (loaded.error.value !== undefined && !turn)
    return <Gone id={id} error={loaded.error.value} back={back} retry={loaded.reload} />;
  if (!turn) return <Skeleton rows={8} />;
  return <Shown turn={turn} isOpen={isOpen} back={back} reload={loaded.reload} />;
}

type Missing = { id: string; error: unknown; back: () => void; retry: () => void };

function Gone({ id, error, back, retry }: Missing) {
  return troubleOf(error).name === "turn-not-found" ? (
    <div class="inspector-head">
      <BackLink back={back} />
      <Note tone="warning">
        <strong>This turn is no longer stored.</strong>
        <p class="mono">{id}</p>
        <p>
          A turn is kept as long as its session: <code>sessions.retention</code> after its last message, or{" "}
          <code>sessions.webhookRetention</code> for a webhook's.
        </p>
      </Note>
    </div>
  ) : (
    <TroubleNote error={error} retry={retry} />
  );
}

type ShownOf = { turn: Turn; isOpen: boolean; back: () => void; reload: () => Promise<void> };

function Shown({ turn, isOpen, back, reload }: ShownOf) {
  const asking = useSignal(false);
  const { turn_id, session_id, agent, status, attempt, created_at, started_at, ended_at, model, reply, error } = turn;
  const ran = started_at && ended_at ? Date.parse(ended_at) - Date.parse(started_at) : undefined;
  return (
    <article aria-label={`Turn ${turn_id}`}>
      <header class="inspector-head">
        <BackLink back={back} />
        <div class="line">
          <State of={status} />
          <Id id={turn_id} most={40} />
        </div>
        <div class="bar-actions">
          <a class="button" href={hrefOf(`/s/${encodeURIComponent(session_id)}`)}>
            <Icon name="messages-square" size={14} /> Open the session
          </a>
          <ActionButton
            kind="danger"
            onClick={() => (asking.value = true)}
            why={isOpen ? undefined : "It has ended already."}
          >
            <Icon name="x" size={14} /> Cancel the turn
          </ActionButton>
        </div>
      </header>
      {error && (
        <Note tone="bad">
          <strong>{error.title}</strong>
          {error.detail && <p>{error.detail}</p>}
        </Note>
      )}
      <div class="section">
        <Facts
          of={[
            [
              "Agent",
              <a key="agent" href={hrefOf(`/agents/${encodeURIComponent(agent)}`)}>
                {agent}
              </a>,
            ],
            [
              "Session",
              <Id key="session" id={session_id} href={hrefOf(`/s/${encodeURIComponent(session_id)}`)} most={40} />,
            ],
            [
              "Request",
              turn.delivery_id === null ? (
                <span key="none" class="faint">
                  none is recorded
                </span>
              ) : (
                <Id key="delivery" id={turn.delivery_id} href={hrefOf(`/d/${turn.delivery_id}`)} most={40} />
              ),
            ],
            ["Model", model ?? <span class="faint">the agent's own</span>],
            ["Queued", <Exact key="queued" at={created_at} />],
            ["Started", <Exact key="started" at={started_at} />],
            ["Ended", <Exact key="ended" at={ended_at} />],
            ran !== undefined && [
              "Ran",
              <span key="ran" class="mono">
                {duration(ran)}
              </span>,
            ],
            isOpen && [
              status === "running" ? "Running for" : "Waiting for",
              <Running key="since" since={started_at ?? created_at} />,
            ],
            attempt > 1 && ["Attempt", String(attempt)],
            turn.usage !== null && ["Tokens", <UsageWords key="usage" usage={turn.usage} />],
          ]}
        />
      </div>
      <section class="section" aria-label="Reply">
        <h2>Reply</h2>
        {reply ? (
          <div class="turn-reply">
            <Markdown text={reply} />
          </div>
        ) : (
          <p class="muted">
            {isOpen ? "There is no reply yet. The session shows it while it is written." : "There is no reply."}
          </p>
        )}
      </section>
      {asking.value && (
        <Confirm
          title="Cancel this turn?"
          act="Cancel the turn"
          isDanger
          close={() => (asking.value = false)}
          run={async () => {
            await rest().turns.cancel(turn_id);
            say("Cancelled.");
            await reload();
          }}
        >
          <p>
            {status === "running"
              ? `The agent ${agent} stops. What it has written until then is kept.`
              : `The agent ${agent} never begins it.`}{" "}
            The tokens that it used are counted.
          </p>
          <Plain text={turn_id} />
        </Confirm>
      )}
    </article>
  );
}
