import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { troubleOf } from "../app/api.ts";
import { now } from "../app/clock.ts";
import { zone } from "../app/settings.ts";
import { usePageTitle } from "../app/title.ts";
import { clockTime } from "../lib/format.ts";
import { Icon } from "./icon.tsx";
import { Failed, Note } from "./trouble.tsx";
import type { Loaded } from "./use.ts";

/** The data of a tab for the head of its page. */
export type Head = Pick<Loaded<unknown>, "at" | "reload"> & { count: string | undefined };

type HeadOf = {
  title: string;
  /** The number of rows, next to the title. */
  count?: string | undefined;
  children?: ComponentChildren;
  /** The time when the data of the page was read, and the function that reads the data again. */
  of?: { at: { value: number | undefined }; reload: () => unknown } | undefined;
};

/** The head of a page: its name, how much there is, and what can be done. */
export function PageHead({ title, count, children, of }: HeadOf) {
  usePageTitle(title);
  return (
    <header class="line page-head">
      <h1>{title}</h1>
      {count !== undefined && <span class="count">{count}</span>}
      <div class="actions">
        {children}
        {of && (
          <span class="updated">
            {of.at.value !== undefined && (
              <span class="faint">
                <span class="wide-word">Updated </span>
                {clockTime(Math.min(of.at.value, now.value), zone.value === "utc")}
              </span>
            )}
            <button
              type="button"
              class="icon-button"
              title="Refresh"
              aria-label="Refresh"
              onClick={() => void of.reload()}
            >
              <Icon name="refresh-cw" />
            </button>
          </span>
        )}
      </div>
    </header>
  );
}

type InspectorHeadOf = { all: string; back?: (() => void) | undefined; children?: ComponentChildren };

/** The head of an inspector: on a narrow screen a button back to the list, then the title and the actions. */
export function InspectorHead({ all, back, children }: InspectorHeadOf) {
  return (
    <header class="stack inspector-head">
      {back && (
        <button type="button" class="link back" onClick={back}>
          <Icon name="arrow-left" size={14} /> {all}
        </button>
      )}
      {children}
    </header>
  );
}

/** An empty page: one sentence, and one action. After the action, a keyboard user continues at the start of the page. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  useLayoutEffect(
    () => () => {
      if (document.activeElement?.closest(".empty")) document.getElementById("page")?.focus({ preventScroll: true });
    },
    [],
  );
  return (
    <div class="stack empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

/** Grey bars in the place of content, so that nothing jumps when it arrives. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, n) => (
        <div key={n} />
      ))}
    </div>
  );
}

type PendingOf = { of: Pick<Loaded<unknown>, "value" | "error" | "reload">; rows: number };

/** Shows a skeleton until a value is loaded, and the error if loading fails. */
export function Pending({ of, rows }: PendingOf) {
  return (
    <>
      <Failed of={of} />
      {of.value.value === undefined && of.error.value === undefined && <Skeleton rows={rows} />}
    </>
  );
}

type NotStoredOf = Pick<InspectorHeadOf, "all" | "back" | "children"> & { title: string; id?: string };

/** Says that a record is not stored, and which setting limits how long such records are stored. */
export function NotStored({ all, back, title, id, children }: NotStoredOf) {
  return (
    <InspectorHead all={all} back={back}>
      <Note tone="warning">
        <strong>{title}</strong>
        {id && <p class="mono">{id}</p>}
        {children && <p>{children}</p>}
      </Note>
    </InspectorHead>
  );
}

type MissingOf = NotStoredOf & { of: PendingOf["of"]; name: string };

/** The content of an inspector until its record is loaded. `name`: the error for a record that is not stored. */
export function Missing({ of, name, ...asked }: MissingOf) {
  const { error } = of;
  const isStored = error.value === undefined || troubleOf(error.value).name !== name;
  return isStored ? <Pending of={of} rows={10} /> : <NotStored {...asked} />;
}

type Fact = readonly [name: string, value: ComponentChildren] | undefined | false;

/** Names and values, one below the other. */
export function Facts({ of }: { of: readonly Fact[] }) {
  return (
    <dl class="facts">
      {of.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt class="muted">{fact[0]}</dt>
              <dd>{fact[1] ?? <span class="faint">–</span>}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
