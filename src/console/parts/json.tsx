import { signal, useSignal } from "@preact/signals";
import { copyText } from "../app/toasts.ts";
import { bytes } from "../lib/format.ts";
import { CopyButton } from "./copy.tsx";

/** The first part of a long text; the rest comes when asked for. */
const FIRST = 64 * 1024;
/** Deeper than this, and longer than this, an object is folded. */
const DEPTH = 3;
const ENTRIES = 50;

/** Pretty or raw, for every body on every page: who reads bytes reads all of them as bytes. */
const view = signal<"pretty" | "raw">("pretty");

/** How a place in a payload is written in a template. */
export function placeOf(path: readonly (string | number)[]): string {
  return `{${["body", ...path].join(".")}}`;
}
/** The same place with its value, as a line of `match`. */
export function matchOf(path: readonly (string | number)[], value: unknown): string {
  return `"${["body", ...path].join(".")}": ${JSON.stringify(value)}`;
}

type Shown = {
  text: string;
  /** The name of the text, for the buttons' words. */
  what: string;
  /** Called when a value is clicked; without it the value itself is copied. */
  pick?: ((path: (string | number)[], value: unknown) => void) | undefined;
};

/** A body: pretty where it is JSON, or raw, which is the text as it was kept. */
export function Body({ text, what, pick }: Shown) {
  const whole = useSignal(false);
  const filter = useSignal("");
  const isLong = text.length > FIRST;
  const parsed = parse(text);
  const isPretty = view.value === "pretty" && parsed !== undefined && (!isLong || whole.value);
  return (
    <div class="body">
      <div class="body-bar">
        <div class="segmented" role="group" aria-label={`How ${what} is shown`}>
          {(["pretty", "raw"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={view.value === one} onClick={() => (view.value = one)}>
              {one === "pretty" ? "Pretty" : "Raw"}
            </button>
          ))}
        </div>
        {isPretty && (
          <input
            type="search"
            placeholder="Filter"
            aria-label={`Filter ${what}`}
            value={filter.value}
            onInput={({ currentTarget }) => (filter.value = currentTarget.value)}
          />
        )}
        <span class="faint">{bytes(new Blob([text]).size)}</span>
        <CopyButton text={text} what={`Copy ${what}`} />
      </div>
      {isPretty ? (
        <div class="tree mono">
          <Tree value={parsed.value} path={[]} filter={filter.value.toLowerCase()} pick={pick} />
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

function parse(text: string): { value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { value } : undefined;
  } catch {
    return undefined;
  }
}

type Node = { value: unknown; path: (string | number)[]; filter: string; pick: Shown["pick"]; name?: string | number };

function Tree({ value, path, filter, pick, name }: Node) {
  const isList = Array.isArray(value);
  const entries = isList ? [...value.entries()] : isObject(value) ? Object.entries(value) : undefined;
  const open = useSignal(path.length < DEPTH && (entries?.length ?? 0) <= ENTRIES);
  const all = useSignal(false);
  if (!entries) return <Leaf value={value} path={path} pick={pick} {...(name !== undefined && { name })} />;
  const matching = filter === "" ? entries : entries.filter(([key, inner]) => holds(key, inner, filter));
  if (filter !== "" && path.length > 0 && matching.length === 0) return null;
  const shown = all.value ? matching : matching.slice(0, ENTRIES * 2);
  const isOpen = open.value || filter !== "";
  return (
    <div class="tree-node">
      <button type="button" class="tree-fold" aria-expanded={isOpen} onClick={() => (open.value = !isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
        {name !== undefined && <span class="tree-key">{name}: </span>}
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
              pick={pick}
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

function Leaf({ value, path, pick, name }: Omit<Node, "filter">) {
  const kind = value === null ? "null" : typeof value;
  const text = kind === "string" ? JSON.stringify(value) : String(value);
  const act = () =>
    pick ? pick(path, value) : void copyText(kind === "string" ? (value as string) : text, "Value copied");
  return (
    <div class="tree-leaf">
      {name !== undefined && <span class="tree-key">{name}: </span>}
      <button
        type="button"
        class="tree-value"
        data-kind={kind}
        title={pick ? placeOf(path) : "Copy the value"}
        onClick={act}
      >
        {text.length > 2_000 ? `${text.slice(0, 2_000)}…` : text}
      </button>
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
      <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
