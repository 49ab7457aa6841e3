import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { zone } from "#console/app/settings.ts";
import { say } from "#console/app/toasts.ts";
import { plannedTimes, readersZone, stateOfRun, whenOf } from "#console/lib/schedules.ts";
import { AgentLink, idFact } from "#console/parts/copy.tsx";
import { AskButton } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { RawJson } from "#console/parts/json.tsx";
import { Facts, InspectorHead } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago, Countdown, Exact } from "#console/parts/time.tsx";
import { Failed, Note } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { Schedule } from "#generated/clients/typescript/src/rest.ts";

type Shown = { schedule: Schedule; back: () => void; reread: () => Promise<void> };

/** One schedule: its next times, its last run, and its buttons. */
export function ScheduleView({ schedule, back, reread }: Shown) {
  const { name, state, paused_at, last } = schedule;
  return (
    <article aria-label={`Schedule ${name}`}>
      <InspectorHead all="All schedules" back={back}>
        <div class="line">
          <h2>{name}</h2>
          <State of={state} />
        </div>
        <p class="muted">
          <When schedule={schedule} />
        </p>
        <div class="actions bar-actions bottom-bar">
          <RunNow schedule={schedule} reread={reread} />
          {state === "paused" ? (
            <Resume schedule={schedule} reread={reread} />
          ) : (
            <Pause schedule={schedule} reread={reread} />
          )}
        </div>
      </InspectorHead>
      {state === "paused" && (
        <Note tone="warning">
          <strong>
            Paused <Ago at={paused_at} />.
          </strong>{" "}
          No planned runs start, and none is recorded as missed.
        </Note>
      )}
      <NextRuns schedule={schedule} />
      <section class="section" aria-label="Last run">
        <header>
          <h3>Last run</h3>
          <div class="actions">
            <a href={hrefOf(`/activity?surface=schedule&agent=${encodeURIComponent(schedule.agent)}`)}>
              Runs in Activity
            </a>
          </div>
        </header>
        {last ? <LastRun last={last} /> : <p class="muted">No run yet.</p>}
      </section>
      <section class="section" aria-label="Configuration">
        <h3>Configuration</h3>
        <Configured schedule={schedule} />
      </section>
    </article>
  );
}

/** The times in words, with the cron expression and its zone. */
function When({ schedule }: { schedule: Schedule }) {
  const { cron, time_zone } = schedule;
  const words = whenOf(schedule);
  return (
    <>
      {words === cron ? <code>{cron}</code> : words}
      {cron !== null && `, ${time_zone}`}
      {cron !== null && words !== cron && (
        <>
          {" "}
          (<code>{cron}</code>)
        </>
      )}
    </>
  );
}

function RunNow({ schedule: { name, agent }, reread }: Omit<Shown, "back">) {
  return (
    <AskButton
      icon="play"
      word="Run now"
      hotkey="r"
      why={whyNot("rest")}
      title={`Run the schedule ${name} now?`}
      act="Run now"
      run={async () => {
        await rest().schedules.run(name);
        say("The turn is queued.");
        await reread();
      }}
    >
      <p>
        Starts a turn for <strong>{agent}</strong>. The planned runs do not change.
      </p>
    </AskButton>
  );
}

/** Only pausing asks for a confirmation: resuming starts no turn. */
function Pause({ schedule: { name }, reread }: Omit<Shown, "back">) {
  return (
    <AskButton
      icon="pause"
      word="Pause"
      why={whyNot("rest")}
      title={`Pause the schedule ${name}?`}
      act="Pause"
      run={async () => {
        await rest().schedules.pause(name);
        await reread();
      }}
    >
      <p>No planned runs start until you resume the schedule. A running turn continues.</p>
    </AskButton>
  );
}

function Resume({ schedule: { name }, reread }: Omit<Shown, "back">) {
  const action = useAction(async () => {
    await rest().schedules.resume(name);
    say("Resumed.");
    await reread();
  });
  return (
    <>
      <ActionButton icon="play" kind="primary" why={whyNot("rest")} runs={action}>
        Resume
      </ActionButton>
      <Failed of={action} />
    </>
  );
}

/** The next planned times in the reader's zone, and in the zone of the schedule if that is another. */
function NextRuns({ schedule: { next, time_zone, cron, state } }: { schedule: Schedule }) {
  const readers = readersZone(zone.value === "utc");
  const times = plannedTimes(next, time_zone, readers);
  const isOther = cron !== null && times.some(({ here, there }) => there !== undefined && there !== here);
  return (
    <section class="section spaced" aria-label="Next runs">
      <h3>Next runs</h3>
      {times.length === 0 ? (
        <p class="muted">{state === "paused" ? "None until the schedule is resumed." : "No further planned times."}</p>
      ) : (
        <table class="next-runs" data-zones={isOther ? 2 : 1}>
          <thead>
            <tr>
              <th scope="col">{readers}</th>
              {isOther && <th scope="col">{time_zone}</th>}
              <th scope="col" class="end">
                <span class="sr-only">Time until then</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {times.map(({ at, here, there }) => (
              <tr key={at}>
                <td>
                  <time dateTime={at}>{here}</time>
                </td>
                {isOther && <td class="muted">{there}</td>}
                <td class="end faint">
                  <Countdown to={at} over="now" />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function LastRun({ last }: { last: NonNullable<Schedule["last"]> }) {
  const { planned_at, at, reason, requested_by } = last;
  return (
    <Facts
      of={[
        [
          "Outcome",
          <>
            <State of={stateOfRun(last)} /> <Ago at={at} />
          </>,
        ],
        reason !== null && ["Reason", reason],
        requested_by === null ? ["Planned for", <Exact at={planned_at} />] : ["Requested by", requested_by],
        idFact("Turn", last.turn_id, "t"),
        idFact("Request", last.delivery_id, "d"),
      ]}
    />
  );
}

function Configured({ schedule }: { schedule: Schedule }) {
  const { agent, message, skill_id, params, session_id, model, channel, delivery } = schedule;
  return (
    <Facts
      of={[
        ["Agent", <AgentLink name={agent} />],
        message !== null && ["Message", <span class="plain-text">{message}</span>],
        skill_id !== null && [
          "Skill",
          <a class="mono" href={hrefOf(`/skills/${encodeURIComponent(skill_id)}`)}>
            {skill_id}
          </a>,
        ],
        params !== null && Object.keys(params).length > 0 && ["Params", <RawJson value={params} />],
        session_id === null ? ["Session", "a new session each time"] : idFact("Session", session_id, "s"),
        model !== null && ["Model", <span class="mono">{model}</span>],
        channel !== null && ["Channel", channel],
        ["Reply", delivery === "announce" ? "sent to the channel" : "not sent to a channel"],
        [
          "Overlap",
          `A run is ${schedule.overlap === "skip" ? "skipped" : "queued"} while the last turn has not ended.`,
        ],
        [
          "Missed",
          schedule.missed === "skip"
            ? "A missed run is recorded, and does not start later."
            : `A missed run starts later, at most ${schedule.missed_within} after its time.`,
        ],
      ]}
    />
  );
}
