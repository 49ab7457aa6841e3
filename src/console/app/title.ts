import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { shortId } from "../lib/ids.ts";
import { shownText } from "../lib/visible-text.ts";

const page = signal("");
const note = signal<string | undefined>(undefined);
/** The id or name of the thing that the page shows, from its address. */
export const thing = signal<string | undefined>(undefined);

// The thing first: tabs and the history are narrow.
effect(() => {
  const parts =
    thing.value === undefined ? [page.value, "Agent Gateway"] : [shortId(thing.value), note.value, page.value];
  document.title = shownText(parts.filter(Boolean).join(" · "));
});

export function usePageTitle(title: string): void {
  useEffect(() => {
    page.value = title;
  }, [title]);
}

/** Adds to the title what the thing belongs to, as its agent. */
export function useTitleNote(text: string | null | undefined): void {
  useEffect(() => {
    note.value = text ?? undefined;
    return () => {
      note.value = undefined;
    };
  }, [text]);
}
