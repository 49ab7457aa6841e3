import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { now } from "../app/clock.ts";
import { zone } from "../app/settings.ts";
import { usePageTitle } from "../app/title.ts";
import { clockTime } from "../lib/format.ts";
import { Icon } from "./icon.tsx";

type Head = {
  title: string;
  /** How many there are, beside the title. */
  count?: string | undefined;
  children?: ComponentChildren;
  /** When what is shown was read, and how to read it again. */
  updated?: number | undefined;
  refresh?: (() => void) | undefined;
};

/** The head of a page: its name, how much there is, and what can be done. */
export function PageHead({ title, count, children, updated, refresh }: Head) {
  usePageTitle(title);
  return (
    <header class="page-head">
      <h1>{title}</h1>
      {count !== undefined && <span class="count">{count}</span>}
      <div class="actions">
        {children}
        {refresh && (
          <span class="updated">
            {updated !== undefined && (
              <span class="faint">
                <span class="wide-word">Updated </span>
                {clockTime(Math.min(updated, now.value), zone.value === "utc")}
              </span>
            )}
            <button type="button" class="icon-button" title="Refresh" aria-label="Refresh" onClick={refresh}>
              <Icon name="refresh-cw" />
            </button>
          </span>
        )}
      </div>
    </header>
  );
}

/** An empty page: one sentence, and one thing to do. Once that is done, whoever did it by the keyboard goes on at the page's start. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  useLayoutEffect(
    () => () => {
      if (document.activeElement?.closest(".empty")) document.getElementById("page")?.focus({ preventScroll: true });
    },
    [],
  );
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

/** Grey bars where content will be: nothing jumps when it comes. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, n) => (
        <div key={n} />
      ))}
    </div>
  );
}

/** Names and values, one below the other. */
export function Facts({
  of,
}: {
  of: readonly (readonly [name: string, value: ComponentChildren] | undefined | false)[];
}) {
  return (
    <dl class="facts">
      {of.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1] ?? <span class="faint">–</span>}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
