import { useSignal } from "@preact/signals";
import { now as clock } from "#console/app/clock.ts";
import { notReady } from "#console/app/readiness.ts";
import { hrefOf } from "#console/app/router.ts";
import { about, count, plural } from "#console/lib/format.ts";
import { minuteOf, type Now, turnsUntil } from "#console/lib/live-now.ts";
import type { Work } from "#console/lib/live-stream.ts";
import { reasonsOf } from "#console/lib/refusals.ts";
import type { Trouble } from "#console/lib/troubles.ts";
import { Prose } from "#console/parts/prose.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";

/** The most troubles that are shown before the reader asks for all. */
const MOST_TROUBLES = 3;

/** All troubles, one per line, each with a link. Shows nothing if there are none. */
export function Troubles({ troubles }: { troubles: readonly Trouble[] }) {
  const all = useSignal(false);
  const draining = notReady.value?.word === "Draining" ? notReady.value.detail : undefined;
  if (troubles.length === 0 && draining === undefined) return null;
  const shown = all.value ? troubles : troubles.slice(0, MOST_TROUBLES);
  return (
    <ul class="troubles" aria-label="Problems">
      {draining !== undefined && (
        <li>
          <State of="degraded" word="Gateway" quiet /> <span>is shutting down. {draining}</span>
        </li>
      )}
      {shown.map(({ subject, words, path, isBad }) => (
        <li key={`${subject} ${words}`}>
          <a href={hrefOf(path)}>
            <State of={isBad ? "failed" : "degraded"} word={subject} quiet />
          </a>{" "}
          <span class="muted break">
            — <Prose text={words} />
          </span>{" "}
          <span class="faint" aria-hidden="true">
            →
          </span>
        </li>
      ))}
      {shown.length < troubles.length && (
        <li>
          <button type="button" class="link" onClick={() => (all.value = true)}>
            and {troubles.length - shown.length} more
          </button>
        </li>
      )}
    </ul>
  );
}

/** Each agent with its state and what it has to do. */
export function Agents({ agents }: Pick<Now, "agents">) {
  return (
    <section class="section" aria-labelledby="live-agents">
      <h2 id="live-agents">Agents</h2>
      <ul class="agent-cards">
        {agents.map(({ agentName, state, paused, running, queued, waitingEvents, heartbeat: { nextAt } }) => (
          <li key={agentName}>
            <div class="line">
              <a href={hrefOf(`/agents/${encodeURIComponent(agentName)}`)}>
                <strong>{agentName}</strong>
              </a>
              <State of={paused ? "paused" : state} quiet />
            </div>
            <p class="muted">
              {[
                running > 0 && `${count(running)} running`,
                queued > 0 && `${count(queued)} queued`,
                waitingEvents > 0 && `${plural(waitingEvents, "event")} waiting`,
                nextAt !== null && nextBeat(Date.parse(nextAt) - clock.value),
              ]
                .filter(Boolean)
                .join(" · ") || "Nothing queued"}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function nextBeat(ms: number): string {
  return ms < 1_000 ? "heartbeat due" : `heartbeat in ${about(ms)}`;
}

/** The turns of the last hour, and what waits. */
export function Figures({ agents, turns, minute, work }: Now & { work: readonly Work[] }) {
  const counts = turnsUntil({ turns, minute }, minuteOf(clock.value));
  const queued = agents.reduce((sum, agent) => sum + agent.queued, 0);
  const events = agents.reduce((sum, { waitingEvents }) => sum + waitingEvents, 0);
  const waiting = work.filter(({ outcome }) => outcome === "queued");
  return (
    <section class="figures" aria-label="Metrics">
      {counts.length > 0 && (
        <figure>
          <figcaption class="muted">Turns per minute on this gateway, last hour</figcaption>
          <Spark counts={counts} />
        </figure>
      )}
      <div class="stack waiting">
        <Waiting
          noun="turn"
          path="/activity?outcome=queued"
          total={queued}
          work={waiting.filter(({ event_id }) => event_id === null)}
        />
        <Waiting
          noun="event"
          path="/events"
          total={events}
          work={waiting.filter(({ event_id }) => event_id !== null)}
        />
      </div>
    </section>
  );
}

type WaitingOf = { noun: string; path: string; total: number; work: readonly Work[] };

/** The number of waiting turns or events, and the age of the oldest if it is on the page. Empty if nothing waits. */
function Waiting({ noun, path, total, work }: WaitingOf) {
  const oldest = work.length >= total ? work.at(-1)?.at : undefined;
  return total === 0 ? null : (
    <p>
      <a href={hrefOf(path)}>
        <State of="queued" word={`${plural(total, noun)} waiting`} />
      </a>{" "}
      {oldest && <span class="muted">oldest: {about(Math.max(1_000, clock.value - Date.parse(oldest)))}</span>}
    </p>
  );
}

/** The refusals of the last hour by reason. Shows nothing if there are none. */
export function Refusals({ refused, most }: { refused: readonly Work[]; most: number }) {
  if (refused.length === 0) return null;
  return (
    <section class="section" aria-labelledby="live-refusals">
      <header>
        <h2 id="live-refusals">Refused in the last hour</h2>
        <div class="actions">
          <a href={hrefOf("/activity?outcome=refused&hours=1")}>
            {refused.length >= most ? `${most}+ refusals` : plural(refused.length, "refusal")}
          </a>
        </div>
      </header>
      <ul class="stack refusals">
        {reasonsOf(refused).map(({ reason, detail, count: times, latest, at }) => (
          <li key={`${reason} ${detail}`}>
            <a href={hrefOf(`/d/${latest}`)}>
              <State of="refused" word={reason} quiet />
            </a>{" "}
            <span class="muted break">
              <Prose text={detail} />
            </span>{" "}
            <span class="faint">
              {times > 1 && `${times}×, last `}
              <Ago at={at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const HEIGHT = 40;
const BAR = 6;

/** A small bar chart. Its label is for screen readers. */
function Spark({ counts }: { counts: readonly number[] }) {
  const most = Math.max(1, ...counts);
  const last = counts.at(-1) ?? 0;
  const total = counts.reduce((sum, one) => sum + one, 0);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${counts.length * BAR} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${total} turns in ${counts.length} minutes, ${last} in the last minute, at most ${most} per minute`}
    >
      {counts.map((value, n) => {
        const height = value === 0 ? 1 : Math.max(3, (value / most) * HEIGHT);
        return (
          <rect key={n} x={n * BAR} y={HEIGHT - height} width={BAR - 1.5} height={height} data-zero={value === 0} />
        );
      })}
    </svg>
  );
}
