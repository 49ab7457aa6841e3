import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest, troubleOf } from "#console/app/api.ts";
import { onPush } from "#console/app/live.ts";
import { hrefOf } from "#console/app/router.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import { BeatNow } from "#console/parts/beat-now.tsx";
import { Id } from "#console/parts/copy.tsx";
import { Confirm } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Body } from "#console/parts/json.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Countdown, Exact } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";

/** When each agent beats next, by its name; null where its heartbeat is off. */
export type Beats = ReadonlyMap<string, string | null>;

type Shown = { id: string; beats: Beats; back: () => void; changed: () => void };

/** One system event: what it says, what became of it, and how to queue it again. */
export function EventView({ id, beats, back, changed }: Shown) {
  const loaded = useLoaded((signal) => rest().events.get(id, { signal }), [id]);
  const isAsking = useSignal(false);
  useEffect(
    () =>
      onPush(({ method, params }) => {
        const { eventId, events } = params as { eventId?: string; events?: string[] };
        if (method.startsWith("event.") && (eventId === id || events?.includes(id))) void loaded.reload();
      }),
    [id],
  );
  const event = loaded.value.value;
  if (!event && loaded.error.value !== undefined)
    return troubleOf(loaded.error.value).name === "event-not-found" ? (
      <Note tone="warning">
        <strong>This event is no longer stored.</strong>
        <p>
          <code>sessions.eventRetention</code> in the configuration sets how long ended events are stored.
        </p>
      </Note>
    ) : (
      <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
    );
  if (!event) return <Skeleton rows={6} />;
  return (
    <article aria-label={`Event ${id}`}>
      <header class="inspector-head">
        <button type="button" class="link back" onClick={back}>
          <Icon name="arrow-left" size={14} /> All events
        </button>
        <div class="line">
          <State of={event.status} word={event.status === "queued" ? "waiting" : event.status} />
          <Id id={event.event_id} most={40} />
        </div>
        <div class="bar-actions">
          <ActionButton
            why={event.status === "dead" ? undefined : "Only dead events can be queued again."}
            onClick={() => {
              isAsking.value = true;
            }}
          >
            <Icon name="rotate-ccw" size={14} /> Queue again
          </ActionButton>
          {event.status === "queued" && <BeatNow agent={event.agent} done={() => void loaded.reload()} />}
        </div>
      </header>
      {event.reason !== null && (
        <Note tone={event.status === "dead" ? "bad" : "warning"}>
          <strong>
            {event.status === "dead" ? `Failed after ${plural(event.attempts, "attempt")}` : "Last turn failed"}
          </strong>
          <p>{event.reason}</p>
        </Note>
      )}
      <pre class="step-text event-text">{event.text}</pre>
      <Facts
        of={[
          [
            "Agent",
            <a key="a" href={hrefOf(`/agents/${encodeURIComponent(event.agent)}`)}>
              {event.agent}
            </a>,
          ],
          ["Sent by", event.caller],
          ["Queued", <Exact key="c" at={event.created_at} />],
          event.status === "queued" && ["Next heartbeat", <Beat key="b" at={beats.get(event.agent)} />],
          event.ended_at !== null && ["Ended", <Exact key="e" at={event.ended_at} />],
          ["Attempts", String(event.attempts)],
          event.turn_id !== null && [
            "Turn",
            <Id key="t" id={event.turn_id} href={hrefOf(`/t/${event.turn_id}`)} most={40} />,
          ],
          event.delivery_id !== null && [
            "Request",
            <Id key="d" id={event.delivery_id} href={hrefOf(`/d/${event.delivery_id}`)} most={40} />,
          ],
        ]}
      />
      {event.metadata !== null && (
        <section class="section reply">
          <h3>Metadata</h3>
          <Body text={JSON.stringify(event.metadata, null, 2)} what="the metadata" />
        </section>
      )}
      {isAsking.value && (
        <Confirm
          title="Queue this event again?"
          act="Queue"
          close={() => {
            isAsking.value = false;
          }}
          run={async () => {
            await rest().events.replay(id);
            say("Queued again.");
            await loaded.reload();
            changed();
          }}
        >
          <p>
            The agent {event.agent} handles the event at its next heartbeat, in a new turn. The number of attempts
            restarts at 0.
          </p>
        </Confirm>
      )}
    </article>
  );
}

function Beat({ at }: { at: string | null | undefined }) {
  return at === null ? <>none (heartbeat is off; set heartbeat.every)</> : <Countdown to={at} over="now" />;
}
