import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { keysOn } from "./settings.ts";

/** A key of this page: its printed form, with the description in the list of keys. */
export type KeyAction = { key: string; does: string; run: () => void };

const actions: KeyAction[][] = [];
/** All keys that act now, for the list that `?` shows. */
export const activeKeys = signal<readonly KeyAction[]>([]);

function publish() {
  const byKey = new Map<string, KeyAction>();
  for (const layer of actions) for (const action of layer) byKey.set(action.key, action);
  activeKeys.value = [...byKey.values()];
}

/** Binds keys until the returned function is called. A later one wins over an earlier one. */
export function bindKeys(layer: KeyAction[]): () => void {
  actions.push(layer);
  publish();
  return () => {
    const at = actions.lastIndexOf(layer);
    if (at >= 0) actions.splice(at, 1);
    publish();
  };
}

/** Binds keys while a component is mounted. A key runs the action of the component's last rendering. */
export function useKeys(keys: readonly KeyAction[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(
    () => bindKeys(keys.map(({ key, does }, n) => ({ key, does, run: () => latest.current[n]?.run() }))),
    [keys.map(({ key, does }) => `${key} ${does}`).join("\n")],
  );
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

let prefix = "";
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey) return;
  const palette = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k";
  if (!palette && (event.metaKey || event.ctrlKey || isField(event.target) || keysOn.value === "off")) return;
  // A dialog has its own keys.
  if (!palette && document.querySelector("dialog[open]")) return;
  const pressed = palette ? "palette" : prefix + event.key;
  const found = activeKeys.value.find(({ key }) => key === pressed || (key === "/" && pressed === "palette"));
  prefix = "";
  clearTimeout(prefixTimer);
  if (found) {
    event.preventDefault();
    found.run();
  } else if (event.key === "g") {
    prefix = "g ";
    prefixTimer = setTimeout(() => {
      prefix = "";
    }, 1_200);
  }
});
