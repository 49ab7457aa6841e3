import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "../app/keys.ts";
import { type Choices, choiceOf, query, setQuery } from "../app/router.ts";
import { keysOn } from "../app/settings.ts";
import { Icon } from "./icon.tsx";
import { Prose } from "./prose.tsx";

type Choice = { name: string; word: string; values: Choices };

/** A filter that stands in the address. */
export function FilterSelect({ name, word, values }: Choice) {
  return (
    <label class="filter">
      <span>{word}</span>
      <Select
        value={choiceOf(query.value, name, values) ?? ""}
        choices={[["", "Any"], ...values]}
        choose={(value) => setQuery({ [name]: value })}
      />
    </label>
  );
}

type Text = { name: string; word: string; placeholder?: string; names?: readonly string[] | undefined };

/** A filter of free text, applied when the user stops typing. `names` are suggestions. */
export function FilterText({ name, word, placeholder = "", names }: Text) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const field = useRef<HTMLInputElement>(null);
  const current = query.value.get(name) ?? "";
  useEffect(() => {
    if (field.current && field.current !== document.activeElement) field.current.value = current;
  }, [current]);
  return (
    <label class="filter">
      <span>{word}</span>
      <input
        ref={field}
        type="search"
        placeholder={placeholder}
        list={names && `${name}-names`}
        defaultValue={current}
        onInput={({ currentTarget: { value } }) => {
          clearTimeout(timer.current);
          timer.current = setTimeout(() => setQuery({ [name]: value.trim() }), 250);
        }}
      />
      {names && (
        <datalist id={`${name}-names`}>
          {names.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </label>
  );
}

type FiltersOf = {
  names: readonly string[];
  children: ComponentChildren;
  /** Further filters by their names, shown on demand; one that is set is always shown. */
  more?: { fields: Readonly<Record<string, ComponentChildren>>; opened?: () => void };
};

/** The row of filters of a list. `f` leads to the first of them. */
export function Filters({ names, more, children }: FiltersOf) {
  const row = useRef<HTMLDivElement>(null);
  const focus = () => row.current?.querySelector<HTMLElement>("select, input")?.focus();
  useKeys([{ key: "f", does: "Filter", run: focus }]);
  const set = names.filter((name) => query.value.has(name)).length;
  const isAsked = useSignal(false);
  const isOpen = isAsked.value;
  const toggle = () => {
    isAsked.value = !isAsked.peek();
  };
  useEffect(() => {
    if (isOpen) more?.opened?.();
  }, [isOpen]);
  return (
    <div class="line filters" ref={row} role="search" aria-label="Filters" data-open={isOpen}>
      <button type="button" class="button filters-toggle" aria-expanded={isOpen} onClick={toggle}>
        Filters{set > 0 && ` (${set})`}
      </button>
      {children}
      {Object.entries(more?.fields ?? {}).map(([name, field]) => (isOpen || query.value.has(name)) && field)}
      {more && (
        <button type="button" class="button filters-more" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? "Fewer filters" : "More filters"}
        </button>
      )}
      {set > 0 && (
        <button
          type="button"
          class="link"
          onClick={() => setQuery(Object.fromEntries(names.map((name) => [name, ""])))}
        >
          Clear
        </button>
      )}
    </div>
  );
}

type FieldOf = { word: string; hint?: ComponentChildren; error?: string | undefined; children: ComponentChildren };

/** A named field of a form, with what it is for and what is wrong with it. */
export function Field({ word, hint, error, children }: FieldOf) {
  return (
    <label class="stack field">
      <span class="field-name">{word}</span>
      {children}
      {hint && <span class="hint">{hint}</span>}
      {error && (
        <span class="fault" role="alert">
          <Prose text={error} />
        </span>
      )}
    </label>
  );
}

type ButtonOf = {
  children?: ComponentChildren;
  icon?: string | undefined;
  onClick?: () => void;
  /** An asynchronous action. The button is disabled until the action has ended. */
  runs?: { run: () => unknown; isRunning: { value: boolean } };
  /** Its name, if it shows only an icon. */
  name?: string;
  /** Why it cannot be used now. */
  why?: string | undefined;
  kind?: "" | "primary" | "danger";
  /** The key that does the same, printed on the button. */
  hotkey?: string;
  isRunning?: boolean;
  autoFocus?: boolean;
};

/** A button for an action. If the action is not available, the button shows the reason. */
export function ActionButton({ children, icon, onClick, runs, why, kind = "", hotkey, name, ...given }: ButtonOf) {
  const isRunning = given.isRunning ?? runs?.isRunning.value ?? false;
  const press = onClick ?? runs?.run;
  return (
    <button
      type="button"
      class={`button ${kind}`}
      aria-disabled={why !== undefined || isRunning}
      autoFocus={given.autoFocus}
      aria-keyshortcuts={hotkey}
      title={why ?? (hotkey && name ? `${name} (${hotkey})` : name)}
      aria-label={name && why ? `${name}: ${why}` : name}
      onClick={() => why === undefined && !isRunning && press?.()}
    >
      {icon && <Icon name={icon} size={14} />}
      {children}
      {hotkey && <kbd aria-hidden="true">{hotkey}</kbd>}
      {why !== undefined && <span class="sr-only">: {why}</span>}
    </button>
  );
}

type SelectOf<Value extends string> = { value: Value; choices: Choices<Value>; choose: (value: Value) => void };

/** A choice of one of a few values. */
export function Select<Value extends string>({ value, choices, choose }: SelectOf<Value>) {
  return (
    <select value={value} onChange={({ currentTarget }) => choose(currentTarget.value as Value)}>
      {choices.map(([one, word]) => (
        <option key={one} value={one}>
          {word}
        </option>
      ))}
    </select>
  );
}

/** Turns the keys of one letter on and off. */
export function KeysSwitch({ children }: { children: ComponentChildren }) {
  return (
    <label class="line">
      <input
        type="checkbox"
        checked={keysOn.value === "on"}
        onChange={({ currentTarget }) => (keysOn.value = currentTarget.checked ? "on" : "off")}
      />
      <span>{children}</span>
    </label>
  );
}
