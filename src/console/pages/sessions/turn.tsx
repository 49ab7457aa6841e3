import { useEffect, useRef } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import type { Step } from "#console/lib/steps.ts";
import { type CalledTool, stepsOfTurn } from "#console/lib/waterfall.ts";
import { Conversation, TurnLine, ViewSwitch } from "#console/parts/conversation.tsx";
import { AgentLink, Id, idFact } from "#console/parts/copy.tsx";
import { AskButton } from "#console/parts/dialog.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Markdown } from "#console/parts/markdown.tsx";
import { Facts, InspectorHead, Missing } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Exact } from "#console/parts/time.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { useConversation } from "#console/parts/use-conversation.ts";
import { Waterfall } from "#console/parts/waterfall.tsx";
import type { Turn } from "#generated/clients/typescript/src/rest.ts";

/** A turn that has not ended is read again at this interval if its session cannot be followed. */
const REREAD_MS = 2_000;

type Opened = {
  id: string;
  back?: (() => void) | undefined;
  /** Called with the session of the turn once it is known. */
  found?: (sessionId: string) => void;
};

/** One run of an agent: its state, its parts in time, and its messages. */
export function TurnInspector({ id, back, found }: Opened) {
  const loaded = useLoaded((signal) => rest().turns.get(id, { signal }), [id]);
  const turn = loaded.value.value;
  const isOpen = turn?.status === "queued" || turn?.status === "running";
  const mayFollow = whyNot("session.get") === undefined;
  useEffect(() => {
    if (turn) found?.(turn.session_id);
  }, [turn?.session_id]);
  useEffect(() => {
    if (!isOpen || mayFollow) return undefined;
    const timer = setInterval(() => !document.hidden && void loaded.reload(), REREAD_MS);
    return () => clearInterval(timer);
  }, [isOpen, mayFollow]);
  if (!turn)
    return (
      <Missing
        of={loaded}
        name="turn-not-found"
        all="All sessions"
        back={back}
        title="This turn is not stored."
        id={id}
      >
        Turns are deleted with their session: <code>sessions.retention</code> after the last message,{" "}
        <code>sessions.webhookRetention</code> for webhook sessions.
      </Missing>
    );
  return (
    <article aria-label={`Turn ${id}`} class="session">
      <Head turn={turn} isOpen={isOpen} back={back} reload={loaded.reload} />
      {mayFollow ? (
        <Followed turn={turn} isOpen={isOpen} reload={loaded.reload} />
      ) : (
        <>
          <Parts turn={turn} isOpen={isOpen} calls={[]} />
          <TurnLine turn={shownOf(turn)} />
          {turn.reply ? <Markdown text={turn.reply} /> : <p class="muted">No reply{isOpen ? " yet" : ""}.</p>}
        </>
      )}
    </article>
  );
}

function shownOf({ turn_id, status, attempt, error, usage, model, created_at, started_at, ended_at }: Turn) {
  const times = { startedAt: started_at, endedAt: ended_at, at: ended_at ?? started_at ?? created_at };
  return { turnId: turn_id, status, attempt, error, usage, model, ...times };
}

type ShownOf = { turn: Turn; isOpen: boolean; reload: () => Promise<void> };

/** The messages of the turn while they are written. Each change of the turn's state reads the turn again. */
function Followed({ turn, isOpen, reload }: ShownOf) {
  const { turn_id, session_id, agent } = turn;
  const conversation = useConversation(session_id, turn_id);
  const { messages, turns } = conversation.transcript.value;
  const { status = turn.status, attempt = turn.attempt } = turns[turn_id] ?? {};
  useEffect(() => {
    if (status !== turn.status || attempt !== turn.attempt) void reload();
  }, [status, attempt]);
  return (
    <>
      <Parts turn={turn} isOpen={isOpen} calls={messages.flatMap(({ toolCalls = [] }) => toolCalls)} />
      <Conversation of={conversation} sessionId={session_id} agentName={agent} />
    </>
  );
}

/** The waterfall: by the timeline of the recorded request, or by what the turn itself shows. */
function Parts({ turn, isOpen, calls }: Omit<ShownOf, "reload"> & { calls: readonly CalledTool[] }) {
  const { delivery_id, status, attempt } = turn;
  const recorded = useLoaded<readonly Step[]>(
    async (signal) => {
      if (delivery_id === null) return [];
      const { timeline } = await rest().deliveries.get(delivery_id, { signal });
      return (timeline as Step[]).slice(timeline.findIndex(({ name }) => name === "turn.queued"));
    },
    [delivery_id],
  );
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) void recorded.reload();
    isFirst.current = false;
  }, [status, attempt]);
  const steps = recorded.value.value?.length ? recorded.value.value : stepsOfTurn(turn, calls);
  return (
    <section class="section" aria-label="Timing">
      <Waterfall steps={steps} isOpen={isOpen} />
    </section>
  );
}

function Head({ turn, isOpen, back, reload }: ShownOf & { back: (() => void) | undefined }) {
  const { turn_id, session_id, agent, status, created_at, delivery_id } = turn;
  const why = isOpen ? whyNot("rest") : "The turn has ended.";
  return (
    <InspectorHead all="All sessions" back={back}>
      <div class="line">
        <State of={status} />
        <Id id={turn_id} most={40} />
      </div>
      <div class="actions bar-actions">
        <a class="button" href={hrefOf(`/s/${encodeURIComponent(session_id)}`)}>
          <Icon name="messages-square" size={14} /> Open the session
        </a>
        <AskButton
          icon="x"
          word="Stop the turn"
          why={why}
          title="Stop this turn?"
          act="Stop the turn"
          isDanger
          run={async () => {
            await rest().turns.cancel(turn_id);
            say("Stopped.");
            await reload();
          }}
        >
          <p>
            {status === "running"
              ? `The agent ${agent} stops. The partial reply and its token usage are stored.`
              : "The queued turn will not start."}
          </p>
        </AskButton>
        <ViewSwitch />
      </div>
      <Facts
        of={[
          ["Agent", <AgentLink name={agent} />],
          idFact("Session", session_id, "s"),
          idFact("Request", delivery_id, "d") || ["Request", <span class="faint">none</span>],
          ["Queued", <Exact at={created_at} />],
        ]}
      />
    </InspectorHead>
  );
}
