import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useKeys } from "../app/keys.ts";
import { plural } from "../lib/format.ts";
import { hasOlder, isAway, type LiveList } from "../lib/live-list.ts";
import type { LiveRows } from "./live-rows.ts";
import { Skeleton } from "./page.tsx";
import { Table, type TableOf } from "./table.tsx";
import { Failed } from "./trouble.tsx";

type LiveTableOf<Row> = Omit<TableOf<Row>, "rows" | "more"> & {
  rows: LiveRows<Row>;
  /** Shown instead of an empty list. */
  empty: ComponentChildren;
};

/** The number of rows that a list shows, with their noun. */
export function countOf<Row>(list: LiveList<Row>, noun: string, nouns?: string): string | undefined {
  return list.items.length === 0
    ? undefined
    : plural(list.items.length, noun, nouns).replace(" ", hasOlder(list) || isAway(list) ? "+ " : " ");
}

/** Waiting new rows, or the way back to them. It moves nothing automatically. */
export function Pill<Row>({ rows }: { rows: LiveRows<Row> }) {
  const { waiting } = rows.list.value;
  useKeys([{ key: ".", does: "Jump to live", run: rows.release }]);
  if (waiting.length === 0 && !isAway(rows.list.value)) return null;
  return (
    <button type="button" class="pill" onClick={rows.release}>
      {waiting.length === 0 ? "Jump to live" : `${waiting.length > 100 ? "100+" : waiting.length} new`}
    </button>
  );
}

/** A live list. Shows a skeleton until the list is loaded, the error of a failed read, and `empty` if the list has no rows. */
export function LiveTable<Row>({ empty, ...of }: LiveTableOf<Row>) {
  const { list, isLoading, error } = of.rows;
  const isEmpty = list.value.items.length === 0;
  return (
    <>
      <Failed of={of.rows} />
      {!isEmpty ? <Rows {...of} /> : isLoading.value ? <Skeleton rows={10} /> : error.value === undefined && empty}
    </>
  );
}

/** The table with a part of the rows, and the buttons for waiting, newer and older rows. */
function Rows<Row>({ rows, ...table }: Omit<LiveTableOf<Row>, "empty">) {
  const list = rows.list.value;
  const frame = useRef<HTMLDivElement>(null);
  const place = useRef<{ focus: boolean; rows: { row: HTMLTableRowElement; top: number }[] }>(undefined);
  // The positions of the first and the last row before the rows move: one of the two remains at its position on the screen.
  rows.beforeMove.current = () => {
    const all = frame.current?.querySelector("tbody")?.rows;
    const ends = all ? [all[0], all[all.length - 1]].filter((row) => row !== undefined) : [];
    place.current = {
      focus: frame.current?.querySelector("tbody")?.contains(document.activeElement) === true,
      rows: ends.map((row) => ({ row, top: row.getBoundingClientRect().top })),
    };
  };
  useLayoutEffect(() => {
    const before = place.current;
    place.current = undefined;
    const stayed = before?.rows.find(({ row }) => row.isConnected);
    if (!stayed) return;
    scrollBy({ top: stayed.row.getBoundingClientRect().top - stayed.top, behavior: "instant" });
    if (before?.focus && document.activeElement === document.body)
      stayed.row.querySelector<HTMLElement>("a.row-link")?.focus({ preventScroll: true });
  }, [list]);
  const more = (to: "older" | "newer") => () => void rows.move(to);
  return (
    <div ref={frame}>
      <Pill rows={rows} />
      {list.newer.length > 0 && <More word="Show newer" show={more("newer")} isLoading={false} />}
      <Table {...table} rows={list.items} more={rows.move} />
      {hasOlder(list) && <More word="Show older" show={more("older")} isLoading={rows.isLoading.value} />}
    </div>
  );
}

/** Shows more when it becomes visible, or when it is clicked. */
function More({ word, show, isLoading }: { word: string; show: () => void; isLoading: boolean }) {
  const button = useRef<HTMLButtonElement>(null);
  const latest = useRef(show);
  latest.current = show;
  useEffect(() => {
    const watcher = new IntersectionObserver(([seen]) => {
      if (seen?.isIntersecting) latest.current();
    });
    if (button.current) watcher.observe(button.current);
    return () => watcher.disconnect();
  }, []);
  // Not `disabled`, which would take the focus away.
  return (
    <button type="button" class="button more" ref={button} aria-disabled={isLoading} onClick={() => latest.current()}>
      {isLoading ? "Loading…" : word}
    </button>
  );
}
