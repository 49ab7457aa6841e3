import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { shortId } from "../lib/ids.ts";
import { shownText } from "../lib/visible-text.ts";
import { onPush } from "./live.ts";

const page = signal("");
const note = signal<string | undefined>(undefined);
/** The id or name of the thing that the page shows, from its address. */
export const thing = signal<string | undefined>(undefined);

/** The number of things that fail, as far as the console knows. */
export const failing = signal(0);
onPush(({ method, params }) => {
  if (method === "health.changed") failing.value = (params.parts as unknown[]).length;
});

// The thing first: tabs and the history are narrow.
effect(() => {
  const parts =
    thing.value === undefined ? [page.value, "Agent Gateway"] : [shortId(thing.value), note.value, page.value];
  const failed = failing.value > 0 && `✕ ${failing.value} failing`;
  document.title = shownText([failed, ...parts].filter(Boolean).join(" · "));
});

/** The tab's icon: a circle while all is well, a cross while something fails. */
effect(() => {
  const shape =
    failing.value > 0
      ? '<rect width="16" height="16" rx="4" fill="#B3261E"/><path d="M5 5l6 6M11 5l-6 6" stroke="#fff" stroke-width="2" stroke-linecap="round"/>'
      : '<rect width="16" height="16" rx="4" fill="#0B6F66"/><circle cx="8" cy="8" r="3.5" fill="#fff"/>';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${shape}</svg>`;
  document
    .querySelector<HTMLLinkElement>("link[rel=icon]")
    ?.setAttribute("href", `data:image/svg+xml,${encodeURIComponent(svg)}`);
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
