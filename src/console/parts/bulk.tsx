import { type Signal, useSignal } from "@preact/signals";
import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { troubleOf } from "../app/api.ts";
import { hrefOf } from "../app/router.ts";
import { count, plural } from "../lib/format.ts";
import { Dialog } from "./dialog.tsx";
import { Countdown } from "./time.tsx";
import { TroubleNote } from "./trouble.tsx";
import { useLoaded } from "./use.ts";

/** The most that one dialog does. */
const MOST = 1_000;
const PAGE = 500;
/** The pause before an item is tried again if a busy gateway does not say when, and the maximum number of attempts. */
const BUSY_MS = 1_000;
const MOST_TRIES = 30;
const BUSY = /^(rate-limited|session-busy|share-busy|gateway-busy|agent-unavailable|idempotency-in-progress)$/;
/** The next items would fail, too. */
const AWAY =
  /^(unreachable|store-unavailable|store-full|share-full|shutting-down|unauthenticated|key-expired|not-allowed)$/;

type Page<Item> = { items: Item[]; cursor: string | null };
type ReadPage<Item> = (page: { limit: number; cursor?: string }, signal: AbortSignal) => Promise<Page<Item>>;
type Found<Item> = {
  /** The newest first. */
  able: readonly Item[];
  /** The reasons for the skipped items, one for each. */
  skipped: readonly string[];
  /** The list has more items than one dialog does. */
  hasMore: boolean;
};

type BulkOf<Item> = {
  title: string;
  /** The word on the button, and the past tense of it: `Replay`, `replayed`. */
  act: string;
  done: string;
  noun: string;
  read: (signal: AbortSignal) => Promise<Found<Item>>;
  /** The effect, in words. */
  effect: (items: readonly Item[]) => ComponentChildren;
  run: (item: Item) => Promise<unknown>;
  pathOf: (item: Item) => string;
  /** The errors that leave an item out: it cannot be done, and nothing failed. */
  leftOut: readonly string[];
  close: () => void;
};

type Progress<Item> = {
  /** The items that are still to do, the oldest first. */
  left: readonly Item[];
  done: number;
  leftOut: number;
  failed: number;
  /** The items whose answer was lost: they may be done. */
  unknown: readonly Item[];
  error?: unknown;
  state: "running" | "stopped" | "interrupted" | "ended";
  /** When a busy gateway is tried again, and why it is busy. */
  wait?: { until: number; why: string } | undefined;
};

/** Does the same to all items of a list, one after another: counts, asks, shows the progress, and stops on request. */
export function Bulk<Item>({ title, act, done: word, noun, read, effect, run, pathOf, leftOut, close }: BulkOf<Item>) {
  const counted = useLoaded(read);
  const progress = useSignal<Progress<Item> | undefined>(undefined);
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  const { able = [], skipped = [], hasMore = false } = counted.value.value ?? {};
  const now = progress.value;
  const start = () => {
    stop.current = new AbortController();
    const before = now ?? { left: [...able].reverse(), done: 0, leftOut: skipped.length, failed: 0, unknown: [] };
    progress.value = { ...before, error: undefined, state: "running" };
    return runAll(progress as Signal<Progress<Item>>, { run, leftOut }, stop.current.signal);
  };
  const rest = now === undefined ? able : now.left;
  return (
    <Dialog title={title} close={close} isFirm={now?.state === "running"}>
      {counted.error.value !== undefined && (
        <TroubleNote error={counted.error.value} retry={() => void counted.reload()} />
      )}
      {counted.value.value === undefined && counted.error.value === undefined && <p class="muted">Counting…</p>}
      {counted.value.value && !now && (
        <>
          <p>
            <strong>{able.length === 0 ? `No ${noun} here can be ${word}.` : plural(able.length, noun)}</strong>
            {hasMore && ` (the newest ${count(MOST)} in the list)`}
          </p>
          {able.length > 0 && effect(able)}
          <Reasons reasons={skipped} />
        </>
      )}
      {now && <ProgressLine {...now} total={able.length} word={word} />}
      {now && now.unknown.length > 0 && (
        <p class="muted">
          Unknown: the connection was lost before the answer. Check{" "}
          {now.unknown.map((item, n) => (
            <Fragment key={pathOf(item)}>
              {n > 0 && ", "}
              <a href={hrefOf(pathOf(item))} onClick={close}>
                <code>{pathOf(item).split("/").at(-1)}</code>
              </a>
            </Fragment>
          ))}
          .
        </p>
      )}
      {now?.error !== undefined && <TroubleNote error={now.error} />}
      <div class="actions dialog-actions">
        <button type="button" class="button" onClick={now?.state === "running" ? () => stop.current.abort() : close}>
          {now === undefined ? "Cancel" : now.state === "running" ? "Stop" : "Close"}
        </button>
        {now?.state !== "running" && rest.length > 0 && (
          <button type="button" class="button primary" autoFocus onClick={() => void start()}>
            {act} {plural(rest.length, now === undefined ? noun : `more ${noun}`)}
          </button>
        )}
      </div>
    </Dialog>
  );
}

/** Reads the pages of a list up to a number of items. */
export async function readAll<Item>(read: ReadPage<Item>, signal: AbortSignal, most = MOST) {
  const items: Item[] = [];
  for (let cursor: string | null = ""; cursor !== null && items.length < most; ) {
    const page: Page<Item> = await read({ limit: PAGE, ...(cursor && { cursor }) }, signal);
    items.push(...page.items);
    cursor = page.cursor;
    if (items.length >= most && cursor !== null) return { items: items.slice(0, most), hasMore: true };
  }
  return { items, hasMore: false };
}

/** Processes the remaining items one after another, until none is left, the user stops, or the gateway refuses new work. */
async function runAll<Item>(
  progress: Signal<Progress<Item>>,
  { run, leftOut }: Pick<BulkOf<Item>, "run" | "leftOut">,
  signal: AbortSignal,
): Promise<void> {
  const update = (more: Partial<Progress<Item>>) => {
    progress.value = { ...progress.peek(), wait: undefined, ...more };
  };
  for (const item of progress.peek().left) {
    if (signal.aborted) return update({ state: "stopped" });
    const error = await tried(
      () => run(item),
      signal,
      (wait) => update({ wait }),
    );
    const { done, failed, unknown, leftOut: skipped, left: before } = progress.peek();
    const left = before.slice(1);
    const { name } = troubleOf(error);
    if (error === undefined) update({ left, done: done + 1 });
    else if (leftOut.includes(name)) update({ left, leftOut: skipped + 1 });
    else if (name === "unreachable") return update({ left, unknown: [...unknown, item], error, state: "interrupted" });
    else if (AWAY.test(name)) return update({ error, state: "interrupted" });
    else if (BUSY.test(name)) return update(signal.aborted ? { state: "stopped" } : { error, state: "interrupted" });
    else update({ left, failed: failed + 1, error });
  }
  update({ state: "ended" });
}

/** Tries again while the gateway is busy, after the time that the gateway names. Returns the error of the last attempt. */
async function tried(
  run: () => Promise<unknown>,
  signal: AbortSignal,
  onWait: (wait: Progress<unknown>["wait"]) => void,
): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    try {
      await run();
      return undefined;
    } catch (error) {
      const { name, title, retryAfterMs: ms = BUSY_MS } = troubleOf(error);
      if (tries === MOST_TRIES || signal.aborted || !BUSY.test(name)) return error;
      onWait({ until: Date.now() + ms, why: title });
      await pause(ms, signal);
      if (signal.aborted) return error;
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** The items that are left out, counted by the reason. */
function Reasons({ reasons }: { reasons: readonly string[] }) {
  const counts = new Map<string, number>();
  for (const why of reasons) counts.set(why, (counts.get(why) ?? 0) + 1);
  return (
    <>
      {[...counts].map(([why, n]) => (
        <p key={why} class="muted">
          {count(n)} skipped: {why}
        </p>
      ))}
    </>
  );
}

type LineOf<Item> = Progress<Item> & { total: number; word: string };

function ProgressLine<Item>({ left, done, leftOut, failed, unknown, state, wait, total, word }: LineOf<Item>) {
  const parts = [`${count(done)} of ${count(total)} ${word}`];
  if (leftOut > 0) parts.push(`${count(leftOut)} skipped`);
  if (failed > 0) parts.push(`${count(failed)} failed`);
  if (unknown.length > 0) parts.push(`${count(unknown.length)} unknown`);
  const begin = { running: "", stopped: "Stopped. ", interrupted: "Interrupted. ", ended: "Finished. " }[state];
  return (
    <>
      <progress aria-label="Progress" max={Math.max(1, total)} value={total - left.length} />
      <p role="status">
        {begin}
        {parts.join(", ")}
      </p>
      {wait && (
        <p class="muted">
          {wait.why}: next attempt <Countdown to={wait.until} over="now" />
        </p>
      )}
    </>
  );
}
