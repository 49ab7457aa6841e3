import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { troubleOf } from "../app/api.ts";
import { count, plural } from "../lib/format.ts";
import { Dialog } from "./dialog.tsx";
import { TroubleNote } from "./trouble.tsx";
import { useLoaded } from "./use.ts";

/** The most that one dialog does. */
const MOST = 1_000;
const PAGE = 500;
/** The pause before an item is tried again that the gateway was too busy for, and the number of tries. */
const BUSY_MS = 1_000;
const MOST_TRIES = 30;
const BUSY = /^(rate-limited|session-busy|gateway-busy|agent-unavailable|idempotency-in-progress)$/;

type BulkOf<Item> = {
  title: string;
  /** The word on the button, and the past tense of it: `Replay`, `replayed`. */
  act: string;
  done: string;
  noun: string;
  /** A page of the items. */
  read: (
    page: { limit: number; cursor?: string },
    signal: AbortSignal,
  ) => Promise<{ items: Item[]; cursor: string | null }>;
  /** Why an item is left out; undefined where it is not. */
  whyNot: (item: Item) => string | undefined;
  /** The effect, in words. */
  effect: (items: readonly Item[]) => ComponentChildren;
  run: (item: Item) => Promise<unknown>;
  /** The errors that leave an item out: it cannot be done, and nothing failed. */
  leftOut: readonly string[];
  close: () => void;
};

type Progress = {
  done: number;
  leftOut: number;
  failed: number;
  error?: unknown;
  state: "running" | "stopped" | "ended";
};

/** Does the same to all items of a list, one after another: counts, asks, shows the progress, and stops on request. */
export function Bulk<Item>({ title, act, done: word, noun, read, whyNot, effect, run, leftOut, close }: BulkOf<Item>) {
  const counted = useLoaded((signal) => readAll(read, signal));
  const progress = useSignal<Progress | undefined>(undefined);
  const stop = useRef(false);
  useEffect(
    () => () => {
      stop.current = true;
    },
    [],
  );
  const { items = [], hasMore = false } = counted.value.value ?? {};
  const able = items.filter((item) => whyNot(item) === undefined);
  const now = progress.value;
  const start = async () => {
    stop.current = false;
    const seen: Progress = { done: 0, leftOut: items.length - able.length, failed: 0, state: "running" };
    progress.value = { ...seen };
    for (const item of able) {
      if (stop.current) break;
      const error = await tried(() => run(item), stop);
      if (stop.current && error !== undefined) break;
      if (error === undefined) seen.done++;
      else if (leftOut.includes(troubleOf(error).name)) seen.leftOut++;
      else Object.assign(seen, { failed: seen.failed + 1, error });
      progress.value = { ...seen };
    }
    progress.value = { ...seen, state: stop.current ? "stopped" : "ended" };
  };
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
            {hasMore && ` (the newest ${count(MOST)} in the list).`}
          </p>
          {able.length > 0 && effect(able)}
          <Reasons items={items} whyNot={whyNot} />
        </>
      )}
      {now && <ProgressLine {...now} total={able.length} word={word} />}
      {now?.error !== undefined && <TroubleNote error={now.error} />}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={now?.state === "running" ? () => (stop.current = true) : close}>
          {now === undefined ? "Cancel" : now.state === "running" ? "Stop" : "Close"}
        </button>
        {now === undefined && able.length > 0 && (
          <button type="button" class="button primary" autoFocus onClick={() => void start()}>
            {act} {plural(able.length, noun)}
          </button>
        )}
      </div>
    </Dialog>
  );
}

async function readAll<Item>(read: BulkOf<Item>["read"], signal: AbortSignal) {
  const items: Item[] = [];
  for (let cursor: string | null = ""; cursor !== null && items.length < MOST; ) {
    const page: Awaited<ReturnType<typeof read>> = await read({ limit: PAGE, ...(cursor && { cursor }) }, signal);
    items.push(...page.items);
    cursor = page.cursor;
    if (items.length >= MOST && cursor !== null) return { items: items.slice(0, MOST), hasMore: true };
  }
  return { items, hasMore: false };
}

/** Retries while the gateway is busy. Returns the error of the last attempt. */
async function tried(run: () => Promise<unknown>, stop: { current: boolean }): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    try {
      await run();
      return undefined;
    } catch (error) {
      if (tries === MOST_TRIES || stop.current || !BUSY.test(troubleOf(error).name)) return error;
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    }
  }
}

/** The items that are left out, counted by the reason. */
function Reasons<Item>({ items, whyNot }: Pick<BulkOf<Item>, "whyNot"> & { items: readonly Item[] }) {
  const counts = new Map<string, number>();
  for (const item of items) {
    const why = whyNot(item);
    if (why !== undefined) counts.set(why, (counts.get(why) ?? 0) + 1);
  }
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

function ProgressLine({ done, leftOut, failed, state, total, word }: Progress & { total: number; word: string }) {
  const parts = [`${count(done)} of ${count(total)} ${word}`];
  if (leftOut > 0) parts.push(`${count(leftOut)} left out`);
  if (failed > 0) parts.push(`${count(failed)} failed`);
  return (
    <>
      <progress aria-label="Progress" max={Math.max(1, total)} value={state === "ended" ? total : done + failed} />
      <p role="status">
        {state === "stopped" && "Stopped. "}
        {state === "ended" && "Finished. "}
        {parts.join(", ")}
      </p>
    </>
  );
}
