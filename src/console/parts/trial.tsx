import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { waitOf } from "#console/lib/bursts.ts";
import { headersOfLines, payloadOf } from "#console/lib/webhook-requests.ts";
import type { DryRun, MappingDraft, PlannedGroup } from "#generated/clients/typescript/src/rest.ts";
import { Id } from "./copy.tsx";
import { Facts, Skeleton } from "./page.tsx";
import { Prose } from "./prose.tsx";
import { State } from "./state.tsx";
import { Countdown } from "./time.tsx";
import { Note, TroubleNote } from "./trouble.tsx";

/** The pause in typing before a request is sent. */
const PAUSE_MS = 400;

type Result<Value> = { result: Value | undefined; error: unknown; isStale: boolean };

/** Sends the request again once the keys stop changing. Without `ask`, the last result is shown as stale. */
export function usePaused<Value>(
  ask: ((signal: AbortSignal) => Promise<Value>) | undefined,
  keys: readonly unknown[],
  pauseMs = PAUSE_MS,
): Result<Value> {
  const shown = useSignal<Result<Value>>({ result: undefined, error: undefined, isStale: false });
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (!latest.current) {
      shown.value = { ...shown.peek(), isStale: shown.peek().result !== undefined };
      return undefined;
    }
    const own = new AbortController();
    const show = (next: Result<Value>) => {
      if (!own.signal.aborted) shown.value = next;
    };
    const timer = setTimeout(() => {
      latest.current?.(own.signal).then(
        (result) => show({ result, error: undefined, isStale: false }),
        (error: unknown) => show({ result: undefined, error, isStale: false }),
      );
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [ask === undefined, ...keys]);
  return shown.value;
}

/** A typed request; `name` tries only one mapping, `mapping` only that draft. */
type TrialInput = { headers: string; payload: string; name?: string | undefined; mapping?: MappingDraft | undefined };
export type Trial = Result<DryRun>;

/** Tries the mappings with the typed request, once typing pauses. */
export function useTrial(given: TrialInput | undefined): Trial {
  const { headers = "", payload = "", name, mapping } = given ?? {};
  const [head, read] = [headersOfLines(headers), payloadOf(payload)];
  const isReadable = given !== undefined && !("fault" in head) && !("fault" in read);
  const of = mapping ? { mapping } : name !== undefined ? { name } : {};
  const ask = (signal: AbortSignal) => {
    const body = ("body" in read ? read.body : {}) as Record<string, unknown>;
    return rest().mappings.dryRun({ ...head, ...of, body }, { signal });
  };
  return usePaused(isReadable ? ask : undefined, [headers, payload, JSON.stringify(of)]);
}

type Tried = DryRun["mappings"][number];

/** For each mapping the message that it renders, or the pair that failed. */
export function TrialResult({ trial: { result, error, isStale } }: { trial: Trial }) {
  if (error !== undefined) return <TroubleNote error={error} />;
  if (!result) return <Skeleton rows={6} />;
  const matching = result.mappings.filter(({ matched }) => matched);
  const failing = result.mappings.filter(({ matched }) => !matched);
  const [first] = matching;
  return (
    <div class="stack" data-stale={isStale}>
      <p role="status">
        {result.starts !== null ? (
          <>
            <State of="ok" word={result.starts} /> {startsOf(result)}.
          </>
        ) : (
          <>
            <State of="unmatched" word={first ? "Would start no turn" : "No mapping matches"} />{" "}
            {first && `The match (${first.mapping}) only accepts signed requests at ${first.path}.`}
          </>
        )}
      </p>
      {matching.map((tried) => (
        <Match key={tried.mapping} tried={tried} />
      ))}
      {failing.length > 0 && <Failing tried={failing} />}
      {isStale && <p class="hint">Result for the last valid payload.</p>}
    </div>
  );
}

/** What the first mapping that matches would do. */
function startsOf({ starts, mappings }: DryRun): string {
  const turn = mappings.find(({ mapping }) => mapping === starts)?.turn;
  return turn?.coalesce?.joins ? "would join an open turn" : "would start a turn";
}

/** A mapping that matches: its message, and the turn. */
function Match({ tried: { mapping, path, message, turn } }: { tried: Tried }) {
  return (
    <section class="stack dry-run-match" aria-label={`${mapping} matches`}>
      <div class="line">
        <State of="ok" word="matches" quiet />
        <strong>{mapping}</strong>
        <span class="mono faint">{path}</span>
      </div>
      {message !== null && <pre class="raw step-text">{message}</pre>}
      {turn && <PlannedTurn turn={turn} />}
    </section>
  );
}

/** The turn that a request starts or joins, and the places of the mapping that had no value. */
function PlannedTurn({ turn }: { turn: NonNullable<Tried["turn"]> }) {
  const { agent, session_id, model, announce_to, to, thread, coalesce, notes } = turn;
  return (
    <>
      <Facts
        of={[
          ["Agent", agent],
          ["Session", session_id === null ? "a new session" : <span class="mono">{session_id}</span>],
          coalesce !== null && ["Burst key", <span class="mono">{coalesce.key}</span>],
          coalesce !== null && ["Burst", <Burst of={coalesce} />],
          coalesce?.joins != null && ["Starts", <Countdown to={coalesce.joins.closes_at} over="now" />],
          model !== null && ["Model", model],
          announce_to !== null && ["Announced to", announce_to],
          to !== null && ["Reply to", <span class="mono">{to}</span>],
          thread !== null && ["Reply thread", <span class="mono">{thread}</span>],
        ]}
      />
      {notes.length > 0 && (
        <Note tone="warning">
          {notes.map((note) => (
            <p key={note}>
              <Prose text={note} />
            </p>
          ))}
        </Note>
      )}
    </>
  );
}

/** The open turn that a request joins, or the wait of the turn that it starts. */
function Burst({ of }: { of: PlannedGroup }) {
  const { joins } = of;
  if (!joins) return <>starts a turn that waits {waitOf(of)}</>;
  return (
    <>
      joins as request {joins.requests + 1} <Id id={joins.turn_id} href={hrefOf(`/t/${joins.turn_id}`)} />
    </>
  );
}

/** The distance of a miss: only the message is missing, a value differs, or there is no value. */
function distanceOf({ failed }: Tried): number {
  return failed?.path === "message" ? 0 : failed?.found === null ? 2 : 1;
}

/** The mappings that do not match, the nearest miss first, each with the first pair that failed. */
function Failing({ tried }: { tried: readonly Tried[] }) {
  const nearest = tried.toSorted((one, other) => distanceOf(one) - distanceOf(other));
  const rows = nearest.map((one): Miss => {
    const { mapping, path, failed } = one;
    const isNear = one === nearest[0] && distanceOf(one) < 2;
    return { key: mapping, head: <span title={path}>{mapping}</span>, failed, isNear };
  });
  return <Misses label="Mappings that do not match" word="Mapping" rows={rows} />;
}

export type Miss = { key: string; head: ComponentChildren; failed: Tried["failed"]; isNear?: boolean };

/** A table of failed pairs: the path, the expected values, the value that was found. */
export function Misses({ label, word, rows }: { label: string; word: string; rows: readonly Miss[] }) {
  return (
    <div class="scroll-x">
      <table class="tried" aria-label={label}>
        <thead>
          <tr>
            {[word, "Path", "Expected", "Found"].map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, head, failed, isNear }) => (
            <tr key={key} class={isNear ? "nearest" : ""}>
              <td data-name={word}>{head}</td>
              <td class="mono" data-name="Path">
                {failed?.path}
              </td>
              <td class="mono" data-name="Expected">
                {failed?.expected.map((one) => JSON.stringify(one)).join(" or ")}
              </td>
              <td class="mono" data-name="Found">
                {failed?.found == null ? <span class="faint">nothing</span> : JSON.stringify(failed.found)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
