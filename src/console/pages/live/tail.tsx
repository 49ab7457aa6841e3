import { type Signal, useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import { gathered, hold, whenHeld } from "#console/app/live.ts";
import { hrefOf } from "#console/app/router.ts";
import { mayRpc, whyNot } from "#console/app/session.ts";
import { plural } from "#console/lib/format.ts";
import { pathOfWork, type Work, type Written, writtenAfter } from "#console/lib/live-stream.ts";
import type { LiveRows } from "#console/parts/live-rows.ts";
import { State } from "#console/parts/state.tsx";
import { ClockTime } from "#console/parts/time.tsx";
import { placeOf, tookOf } from "#console/parts/work-row.tsx";
import { FirstRequest } from "../activity/first-request.tsx";

const SHOWN = 100;
/** The reader follows the newest line from this many pixels above it. */
const NEAR_END_PX = 24;
/** Replies are followed after this time: most turns have ended by then. */
const FOLLOW_AFTER_MS = 300;
const MOST_WRITTEN = 50;

type TailOf = { rows: LiveRows<Work>; isReading: Signal<boolean>; failing: number };

/** The work as a log, a line each, the newest at the end. The replies of running turns are shown while they are written. */
export function Tail({ rows, isReading, failing }: TailOf) {
  const log = useRef<HTMLDivElement>(null);
  const isPaused = useSignal(false);
  const written = useWritten();
  const { items, waiting } = rows.list.value;
  const shown = items.slice(0, SHOWN);
  const gap = useGap(shown).value;
  useLayoutEffect(() => {
    if (!isReading.peek()) log.current?.scrollTo({ top: log.current.scrollHeight, behavior: "instant" });
  });
  const resume = () => {
    isPaused.value = false;
    isReading.value = false;
    rows.release();
  };
  const pauseOrResume = () => {
    if (isReading.peek()) return resume();
    isPaused.value = true;
    isReading.value = true;
  };
  const move = (step: number) => {
    const links = [...(log.current?.querySelectorAll("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    links[at < 0 ? links.length - 1 : Math.min(links.length - 1, Math.max(0, at + step))]?.focus();
  };
  useEffect(
    () =>
      bindKeys([
        { key: "p", does: "Pause or resume", run: pauseOrResume },
        { key: ".", does: "Jump to live", run: resume },
        { key: "j", does: "Next line", run: () => move(1) },
        { key: "k", does: "Previous line", run: () => move(-1) },
      ]),
    [],
  );
  if (items.length === 0 && !rows.isLoading.value)
    return <FirstRequest isLive={mayRpc.value} onSent={() => void rows.reload()} />;
  return (
    <section class="stack tail" aria-label="Tail">
      <div
        class="tail-log"
        role="log"
        aria-label="Requests and heartbeats, newest last"
        aria-busy={rows.isLoading.value}
        tabIndex={0}
        ref={log}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isReading.value = isPaused.value || scrollHeight - scrollTop - clientHeight >= NEAR_END_PX;
        }}
      >
        <ol>
          {shown.toReversed().map((work) => (
            <Fragment key={work.delivery_id}>
              {work.delivery_id === gap?.above && <GapLine words={gap.words} />}
              <Line work={work} written={written.value.get(work.turn_id ?? "")} />
            </Fragment>
          ))}
        </ol>
      </div>
      <div class="line">
        <button type="button" class="button" onClick={pauseOrResume}>
          {isReading.value ? "Resume" : "Pause"} <kbd>p</kbd>
        </button>
        {failing > 0 && (
          <a href={hrefOf("/")}>
            <State of="failed" word={`${failing} failing`} quiet />
          </a>
        )}
        <span class="muted" role="status">
          {isReading.value &&
            (waiting.length === 0 ? "Paused" : `Paused · ${waiting.length > 100 ? "100+" : waiting.length} new`)}
        </span>
      </div>
    </section>
  );
}

/** Requests that are missing above a line. */
type Gap = { above: string; words: string };

const MOST_COUNTED = 100;

/** The gap between the lines that were shown last and those that replaced them; undefined if nothing is missing. */
function useGap(shown: readonly Work[]): Signal<Gap | undefined> {
  const gap = useSignal<Gap | undefined>(undefined);
  const last = useRef(shown);
  useEffect(() => {
    if (shown.length === 0) return;
    const known = new Set(last.current.map(({ delivery_id }) => delivery_id));
    const newest = last.current.find(isRequest)?.delivery_id;
    const oldest = shown.findLast(isRequest)?.delivery_id;
    const above = shown.at(-1)?.delivery_id ?? "";
    last.current = shown;
    if (!newest || !oldest || shown.some(({ delivery_id }) => known.has(delivery_id))) return;
    countBetween(newest, oldest)
      // Without a count, the line still says that requests are missing.
      .catch(() => "More requests")
      .then((words) => {
        gap.value = words === undefined ? undefined : { above, words };
      });
  });
  return gap;
}

function isRequest(work: Work): boolean {
  return pathOfWork(work).startsWith("/d/");
}

/** How many requests are between two others, in words; undefined for none. Their ids grow with time. */
async function countBetween(older: string, newer: string): Promise<string | undefined> {
  const page = await rest().deliveries.list({ before: newer, limit: MOST_COUNTED });
  const count = page.deliveries.filter(({ delivery_id }) => delivery_id > older).length;
  if (count === 0) return undefined;
  return count === page.deliveries.length && page.next_cursor !== null ? `${count}+ more` : `${count} more`;
}

function GapLine({ words }: Pick<Gap, "words">) {
  return (
    <li class="tail-gap muted">
      {words} · <a href={hrefOf("/activity")}>View in Activity</a>
    </li>
  );
}

/** The replies that are being written, by turn; at most four changes a second. */
function useWritten(): Signal<ReadonlyMap<string, Written>> {
  const written = useSignal<ReadonlyMap<string, Written>>(new Map());
  useEffect(
    () =>
      gathered(
        ({ method }) => method === "message.delta",
        (pushes) => {
          const next = new Map(written.peek());
          for (const { params } of pushes) {
            const piece = params as { turnId: string; offset: number; text: string };
            next.set(piece.turnId, writtenAfter(next.get(piece.turnId), piece));
          }
          for (const oldest of next.keys()) if (next.size > MOST_WRITTEN) next.delete(oldest);
          written.value = next;
        },
      ),
    [],
  );
  return written;
}

function Line({ work, written }: { work: Work; written: Written | undefined }) {
  const line = useRef<HTMLLIElement>(null);
  const { outcome, agent, preview, at, tokens, session_id: session } = work;
  const isRunning = outcome === "running";
  useEffect(() => {
    if (!isRunning || session === null || whyNot("session.get")) return undefined;
    return whileSeen(line, () => {
      const request = { sessions: { [session]: null } };
      const stop = hold(request);
      void whenHeld(request);
      return stop;
    });
  }, [isRunning, session]);
  return (
    <li ref={line}>
      <a class="tail-line" href={hrefOf(pathOfWork(work))}>
        <ClockTime at={at} />
        <span class="tail-agent">{agent ?? "–"}</span>
        <span class="tail-in">{preview ?? placeOf(work)}</span>
        <span class="faint" aria-hidden="true">
          →
        </span>
        <Outcome work={work} written={written} />
        <span class="tail-facts muted">
          {tookOf(work)}
          {tokens !== null && tokens > 0 && ` · ${plural(tokens, "token")}`}
        </span>
      </a>
    </li>
  );
}

/** The reply, or the outcome if there is none. */
function Outcome({ work, written }: { work: Work; written: Written | undefined }) {
  const { outcome, reply_preview: reply, announcement, error } = work;
  if (outcome === "running" && written)
    return (
      <span class="tail-out writing">
        <span class="sr-only">running</span>
        <span aria-hidden="true">{written.text.replace(/\s+/g, " ")}</span>
      </span>
    );
  if (outcome === "completed" && announcement?.state !== "failed")
    return (
      <span class="tail-out">{reply || <span class="faint">{reply === null ? "completed" : "no reply"}</span>}</span>
    );
  const word = outcome === "completed" ? `not delivered to ${announcement?.channel}` : outcome;
  return (
    <span class="tail-out">
      <State of={outcome === "completed" ? "failed" : outcome} word={word} quiet />{" "}
      <span class="muted">{error?.detail ?? announcement?.reason}</span>
    </span>
  );
}

/** Begins something while an element is on the screen, and a short time has passed. */
function whileSeen({ current: element }: { current: Element | null }, begin: () => () => void): () => void {
  let stop: (() => void) | undefined;
  const watcher = new IntersectionObserver((changes) => {
    stop?.();
    stop = changes.at(-1)?.isIntersecting ? begin() : undefined;
  });
  const timer = setTimeout(() => element && watcher.observe(element), FOLLOW_AFTER_MS);
  return () => {
    clearTimeout(timer);
    watcher.disconnect();
    stop?.();
  };
}
