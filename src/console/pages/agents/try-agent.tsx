import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { gathered, onReturn } from "#console/app/live.ts";
import { hrefOf } from "#console/app/router.ts";
import { duration } from "#console/lib/format.ts";
import {
  EMPTY,
  hasEnded,
  type SessionPush,
  type Transcript,
  withPage,
  withPush,
  withTurn,
} from "#console/lib/transcript.ts";
import { Composer } from "#console/parts/composer.tsx";
import { Id } from "#console/parts/copy.tsx";
import { Facts } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Running } from "#console/parts/time.tsx";
import { Messages, ViewSwitch } from "#console/parts/transcript.tsx";
import { UsageWords } from "#console/parts/usage.tsx";

/** A message that was sent from here, and its turn. */
type Sent = { at: number; sessionId: string; turnId: string };

/** Pushes that came before the answer to the call, which names their turn. */
const MOST_EARLY = 500;

function newSession(): string {
  return `console:${Date.now().toString(36)}`;
}

/** A message to an agent, and its reply as it is written. The page is subscribed to the agent already. */
export function TryAgent({ agentName }: { agentName: string }) {
  const transcript = useSignal<Transcript>(EMPTY);
  const sent = useSignal<Sent | undefined>(undefined);
  const isFresh = useSignal(false);
  const early = useRef<SessionPush[]>([]);

  const apply = (pushes: readonly SessionPush[]) => {
    const turnId = sent.peek()?.turnId;
    transcript.value = pushes.filter(({ params }) => params.turnId === turnId).reduce(withPush, transcript.peek());
  };
  useEffect(
    () =>
      gathered(
        ({ method }) => method.startsWith("message.") || method.startsWith("turn."),
        (pushes) => {
          if (sent.peek() !== undefined) apply(pushes as SessionPush[]);
          else early.current = [...early.current, ...(pushes as SessionPush[])].slice(-MOST_EARLY);
        },
      ),
    [],
  );
  const read = async () => {
    const turnId = sent.peek()?.turnId;
    const sessionId = sent.peek()?.sessionId;
    if (turnId === undefined || sessionId === undefined) return;
    const [turn, details] = await Promise.all([rest().turns.get(turnId), rpc().session.get({ sessionId, limit: 20 })]);
    if (sent.peek()?.turnId !== turnId) return;
    const { status, attempt, error, usage, created_at, started_at, ended_at } = turn;
    const page = details.messages.filter((message) => message.turnId === turnId);
    transcript.value = withTurn(withPage(transcript.peek(), page), {
      turnId,
      status,
      attempt,
      at: ended_at ?? started_at ?? created_at,
      ...(error && { error }),
      ...(usage && { usage }),
    });
  };
  useEffect(() => onReturn(() => void read().catch(() => {})), []);
  const send = async (message: string, idempotencyKey: string) => {
    const at = Date.now();
    const chosen = isFresh.peek() ? { sessionId: newSession() } : { channel: "console" };
    sent.value = undefined;
    early.current = [];
    transcript.value = EMPTY;
    const { sessionId, turnId } = await rpc().agent.sendMessage({ agentName, message, idempotencyKey, ...chosen });
    sent.value = { at, sessionId, turnId };
    apply(early.current);
    early.current = [];
    // Pieces can be missing from before the subscription, or while the stream is down.
    await read().catch(() => {});
  };

  const { messages, turns } = transcript.value;
  return (
    <section class="section try-agent" aria-label="Send a message">
      <header>
        <h2>Send a message</h2>
        <div class="actions">
          <ViewSwitch />
        </div>
      </header>
      <Composer label={`Message to ${agentName}`} send={send}>
        <label class="switch">
          <input
            type="checkbox"
            checked={isFresh.value}
            onChange={({ currentTarget }) => (isFresh.value = currentTarget.checked)}
          />
          New session
        </label>
      </Composer>
      {sent.value && <Outcome sent={sent.value} turn={turns[sent.value.turnId]} />}
      {messages.length > 0 && <Messages messages={messages} turns={{}} agentName={agentName} />}
    </section>
  );
}

type TurnOutcome = { sent: Sent; turn: Transcript["turns"][string] | undefined };

/** Where the message went, and what its turn is at. */
function Outcome({ sent: { at, sessionId, turnId }, turn }: TurnOutcome) {
  return (
    <Facts
      of={[
        [
          "Turn",
          <span key="turn" class="try-turn">
            <State of={turn?.status ?? "queued"} />
            <Id id={turnId} href={hrefOf(`/t/${turnId}`)} most={26} />
          </span>,
        ],
        ["Session", <Id key="session" id={sessionId} href={hrefOf(`/s/${encodeURIComponent(sessionId)}`)} most={40} />],
        turn?.error && [
          "Error",
          <span key="error">
            {turn.error.title}
            {turn.error.detail && `: ${turn.error.detail}`}
          </span>,
        ],
        turn?.usage && ["Tokens", <UsageWords key="usage" usage={turn.usage} />],
        [
          "Time",
          turn && hasEnded(turn) ? (
            <span key="time" class="mono">
              {duration(Math.max(0, Date.parse(turn.at) - at))}
            </span>
          ) : (
            <Running key="time" since={new Date(at).toISOString()} />
          ),
        ],
      ]}
    />
  );
}
