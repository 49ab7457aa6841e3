import { effect, signal } from "@preact/signals";
import { browserStorage } from "#console/lib/storage.ts";

/** A choice of the user, stored in this browser. */
function stored<Value extends string>(name: string, values: readonly Value[], fallback: Value) {
  const key = `agent-gateway.${name}`;
  const stored = browserStorage.getItem(key) as Value | null;
  const chosen = signal<Value>(stored !== null && values.includes(stored) ? stored : fallback);
  effect(() => browserStorage.setItem(key, chosen.value));
  // Another tab follows.
  addEventListener("storage", (event) => {
    if (event.key === key && values.includes(event.newValue as Value)) chosen.value = event.newValue as Value;
  });
  return chosen;
}

export const theme = stored("theme", ["system", "light", "dark"], "system");
export const zone = stored("zone", ["local", "utc"], "local");
export const keysOn = stored("keys", ["on", "off"], "on");

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export function nextTheme(): void {
  theme.value = theme.value === "system" ? "light" : theme.value === "light" ? "dark" : "system";
}
