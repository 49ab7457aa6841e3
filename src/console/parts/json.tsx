import { type Signal, signal, useSignal } from "@preact/signals";
import { copyText } from "../app/toasts.ts";
import { bytes } from "../lib/format.ts";
import { CopyButton } from "./copy.tsx";
import { ActionButton } from "./fields.tsx";
import { Segmented } from "./segmented.tsx";

/** The first part of a long text; the rest is shown on request. */
const FIRST = 64 * 1024;
/** Deeper than this, and longer than this, an object is folded. */
const DEPTH = 3;
const ENTRIES = 50;

/** The view of every body on every page. */
const view = signal<"pretty" | "raw">("pretty");

/** An action for a value; `why` is the reason if it is disabled. */
export type ValueAction = { word: string; run: () => void; why?: string | undefined };
type Actions = ((path: (string | number)[], value: unknown) => readonly ValueAction[]) | undefined;

type Shown = {
  text: string;
  /** The JSON that stands for the text: that of the fields, if the text is a form. */
  json?: string | undefined;
  /** The name of the text, for the buttons' words. */
  what: string;
  /** The actions of a value; without them a click copies the value. */
  actions?: Actions;
};

/** A body: pretty if it is JSON or a form, or raw. */
export function Body({ text, json = text, what, actions }: Shown) {
  const whole = useSignal(false);
  const filter = useSignal("");
  const isLong = text.length > FIRST;
  const parsed = parse(json);
  const isPretty = view.value === "pretty" && parsed !== undefined && (!isLong || whole.value);
  return (
    <div class="stack body">
      <div class="actions body-bar">
        <Segmented
          label={`View of ${what}`}
          chosen={view.value}
          choose={(one) => (view.value = one)}
          choices={[
            ["pretty", "Pretty"],
            ["raw", "Raw"],
          ]}
        />
        {isPretty && <TreeFilter of={filter} what={what} />}
        <span class="faint">{bytes(new Blob([text]).size)}</span>
        <CopyButton text={text} what={`Copy ${what}`} />
      </div>
      {isPretty ? (
        <div class="tree mono">
          <Tree value={parsed.value} path={[]} filter={filter.value.toLowerCase()} actions={actions} />
        </div>
      ) : (
        <pre class="raw" tabIndex={0}>
          {whole.value ? text : text.slice(0, FIRST)}
        </pre>
      )}
      {isLong && !whole.value && (
        <button type="button" class="button" onClick={() => (whole.value = true)}>
          Show all {bytes(new Blob([text]).size)}
        </button>
      )}
    </div>
  );
}

function TreeFilter({ of, what }: { of: Signal<string>; what: string }) {
  return (
    <input
      type="search"
      placeholder="Filter"
      aria-label={`Filter ${what}`}
      value={of.value}
      onInput={({ currentTarget }) => (of.value = currentTarget.value)}
    />
  );
}

/** A value as a tree in which a click on a value opens what can be done with it. */
export function ActionTree({ value, what, actions }: { value: unknown; what: string; actions: Actions }) {
  const filter = useSignal("");
  return (
    <div class="stack body">
      <div class="actions body-bar">
        <TreeFilter of={filter} what={what} />
      </div>
      <div class="tree mono">
        <Tree value={value} path={[]} filter={filter.value.toLowerCase()} actions={actions} />
      </div>
    </div>
  );
}

function parse(text: string): { value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { value } : undefined;
  } catch {
    return undefined;
  }
}

type Node = { value: unknown; path: (string | number)[]; filter: string; actions?: Actions; name?: string | number };

function Tree({ value, path, filter, actions, name }: Node) {
  const isList = Array.isArray(value);
  const entries = isList ? [...value.entries()] : isObject(value) ? Object.entries(value) : undefined;
  // In a tree with actions, the first level is the parts of the request.
  const open = useSignal(path.length < (actions ? DEPTH + 1 : DEPTH) && (entries?.length ?? 0) <= ENTRIES);
  const all = useSignal(false);
  if (!entries) return <Leaf value={value} path={path} actions={actions} {...(name !== undefined && { name })} />;
  const matching = filter === "" ? entries : entries.filter(([key, inner]) => holds(key, inner, filter));
  if (filter !== "" && path.length > 0 && matching.length === 0) return null;
  const shown = all.value ? matching : matching.slice(0, ENTRIES * 2);
  const isOpen = open.value || filter !== "";
  return (
    <div class="tree-node">
      <button type="button" class="tree-fold" aria-expanded={isOpen} onClick={() => (open.value = !isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
        {name !== undefined && <span class="muted">{name}: </span>}
        <span class="faint">{isList ? `[${entries.length}]` : `{${entries.length}}`}</span>
      </button>
      {isOpen && (
        <div class="tree-inside">
          {shown.map(([key, inner]) => (
            <Tree
              key={key}
              name={key}
              value={inner}
              path={[...path, key]}
              filter={keyHolds(key, filter) ? "" : filter}
              actions={actions}
            />
          ))}
          {shown.length < matching.length && (
            <button type="button" class="link" onClick={() => (all.value = true)}>
              {matching.length - shown.length} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf({ value, path, actions, name }: Omit<Node, "filter">) {
  const isOpen = useSignal(false);
  const kind = value === null ? "null" : typeof value;
  const text = kind === "string" ? JSON.stringify(value) : String(value);
  const copy = () => void copyText(kind === "string" ? (value as string) : text, "Value copied");
  return (
    <div class="tree-leaf">
      {name !== undefined && <span class="muted">{name}: </span>}
      <button
        type="button"
        class="tree-value"
        data-kind={kind}
        title={actions ? path.join(".") : "Copy the value"}
        aria-expanded={actions && isOpen.value}
        onClick={actions ? () => (isOpen.value = !isOpen.value) : copy}
      >
        {text.length > 2_000 ? `${text.slice(0, 2_000)}…` : text}
      </button>
      {actions && isOpen.value && (
        <div class="tree-actions" role="group" aria-label={path.join(".")}>
          {actions(path, value).map(({ word, run, why }) => (
            <ActionButton key={word} onClick={run} why={why}>
              {word}
            </ActionButton>
          ))}
        </div>
      )}
    </div>
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
function keyHolds(key: string | number, filter: string): boolean {
  return filter !== "" && String(key).toLowerCase().includes(filter);
}
function holds(key: string | number, value: unknown, filter: string): boolean {
  if (keyHolds(key, filter)) return true;
  if (Array.isArray(value)) return value.some((inner, n) => holds(n, inner, filter));
  if (isObject(value)) return Object.entries(value).some(([name, inner]) => holds(name, inner, filter));
  return String(value).toLowerCase().includes(filter);
}

/** Something small as JSON, folded behind a word. */
export function RawJson({ value, word = "JSON" }: { value: unknown; word?: string }) {
  return (
    <details class="raw-json">
      <summary>{word}</summary>
      <pre class="raw" tabIndex={0}>
        {JSON.stringify(value, null, 2)}
      </pre>
    </details>
  );
}
