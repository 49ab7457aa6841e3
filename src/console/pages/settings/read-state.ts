import type { Signal } from "@preact/signals";
import type { Loaded } from "#console/parts/use.ts";
import { useHeld } from "#console/parts/use.ts";

/** When the open tab was read, and how to read it again: the head of the page shows both. */
export type ReadState = { at: Loaded<unknown>["at"]; reload: () => void };

/** Tells the head of the page about what this tab reads, as long as the tab is open. */
export function useReadState(head: Signal<ReadState | undefined>, all: readonly Loaded<unknown>[]): void {
  useHeld(() => {
    const [first] = all;
    if (!first) return undefined;
    const own = { at: first.at, reload: () => all.forEach(({ reload }) => void reload()) };
    head.value = own;
    return () => {
      if (head.peek() === own) head.value = undefined;
    };
  }, []);
}
