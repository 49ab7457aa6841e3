import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { onPush } from "#console/app/live.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import { BeatNow } from "#console/parts/beat-now.tsx";
import { AgentLink, Id, idFact } from "#console/parts/copy.tsx";
import { AskButton } from "#console/parts/dialog.tsx";
import { Body } from "#console/parts/json.tsx";
import { Facts, InspectorHead, Missing } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Countdown, Exact } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";

/** The time of each agent's next beat, by its name; null if its heartbeat is off. */
export type Beats = ReadonlyMap<string, string | null>;

type Shown = { id: string; beats: Beats; back: () => void; changed: () => void };

/** One system event: its text, its state, and a button to queue it again. */
export function EventView({ id, beats, back, changed }: Shown) {
  const loaded = useLoaded((signal) => rest().events.get(id, { signal }), [id]);
  useEffect(
    () =>
      onPush(({ method, params }) => {
        const { eventId, events } = params as { eventId?: string; events?: string[] };
        if (method.startsWith("event.") && (eventId === id || events?.includes(id))) void loaded.reload();
      }),
    [id],
  );
  const event = loaded.value.value;
  if (!event)
    return (
      <Missing of={loaded} name="event-not-found" all="All events" back={back} title="This event is no longer stored.">
        <code>sessions.eventRetention</code> in the configuration sets how long ended events are stored.
      </Missing>
    );
  return (
    <article aria-label={`Event ${id}`}>
      <InspectorHead all="All events" back={back}>
        <div class="line">
          <State of={event.status} word={event.status === "queued" ? "waiting" : event.status} />
          <Id id={event.event_id} most={40} />
        </div>
        <div class="actions bar-actions">
          <AskButton
            icon="rotate-ccw"
            word="Queue again"
            why={event.status === "dead" ? undefined : "Only dead events can be queued again."}
            title="Queue this event again?"
            act="Queue"
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
          </AskButton>
          {event.status === "queued" && <BeatNow agent={event.agent} done={() => void loaded.reload()} />}
        </div>
      </InspectorHead>
      {event.reason !== null && (
        <Note tone={event.status === "dead" ? "bad" : "warning"}>
          <strong>
            {event.status === "dead" ? `Failed after ${plural(event.attempts, "attempt")}` : "Last turn failed"}
          </strong>
          <p>{event.reason}</p>
        </Note>
      )}
      <div class="section">
        <pre class="raw step-text">{event.text}</pre>
        <Facts
          of={[
            ["Agent", <AgentLink name={event.agent} />],
            ["Sent by", event.caller],
            ["Queued", <Exact at={event.created_at} />],
            event.status === "queued" && [
              "Next heartbeat",
              <NextBeat at={beats.get(event.agent)} never="none (heartbeat is off; set heartbeat.every)" />,
            ],
            event.ended_at !== null && ["Ended", <Exact at={event.ended_at} />],
            ["Attempts", String(event.attempts)],
            idFact("Turn", event.turn_id, "t"),
            idFact("Request", event.delivery_id, "d"),
          ]}
        />
      </div>
      {event.metadata !== null && (
        <section class="section">
          <h3>Metadata</h3>
          <Body text={JSON.stringify(event.metadata, null, 2)} what="the metadata" />
        </section>
      )}
    </article>
  );
}

/** The time of an agent's next heartbeat. `at` is undefined if the time is not known, and null if the agent has no heartbeat. */
export function NextBeat({ at, never }: { at: string | null | undefined; never: string }) {
  return at === null ? <span class="muted">{never}</span> : <Countdown to={at} over="now" />;
}
