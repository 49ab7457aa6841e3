import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { browserStorage } from "#console/lib/storage.ts";
import { useKeys } from "../app/keys.ts";
import { pageOf } from "../app/pages.ts";
import { keepsPlace, path, pathOf } from "../app/router.ts";

const KEY = "agent-gateway.split";
const USUAL = 58;
function within(share: number): number {
  return Math.min(75, Math.max(25, share));
}

type SplitOf = {
  list: ComponentChildren;
  inspector: ComponentChildren | undefined;
  usual?: number;
  /** Leaves the inspector, also by Escape. */
  back: () => void;
};

/** A list with an inspector next to the list, which has the `usual` share in percent until the reader moves the bar. On a narrow screen the inspector takes the page, and the focus goes there. */
export function Split({ list, inspector, usual = USUAL, back }: SplitOf) {
  useKeys([{ key: "Escape", does: "Back to the list", run: back }]);
  const key = usual === USUAL ? KEY : `${KEY}.${usual}`;
  const share = useSignal(within(Number(browserStorage.getItem(key)) || usual));
  const frame = useRef<HTMLDivElement>(null);
  const details = useRef<HTMLElement>(null);
  const isOpen = Boolean(inspector);
  usePlace(frame, details, isOpen);
  const set = (next: number) => {
    share.value = within(next);
    browserStorage.setItem(key, String(Math.round(share.value)));
  };
  const drag = (event: PointerEvent) => {
    const target = event.currentTarget as HTMLElement;
    target.setPointerCapture(event.pointerId);
    const move = ({ clientX }: PointerEvent) => {
      const box = frame.current?.getBoundingClientRect();
      if (box) set(((clientX - box.left) / box.width) * 100);
    };
    target.addEventListener("pointermove", move);
    target.addEventListener("pointerup", () => target.removeEventListener("pointermove", move), { once: true });
  };
  // The list remains the same element, so that the focus does not change.
  return (
    <div class={isOpen ? "split" : "split single"} ref={frame} style={{ "--share": `${share.value}%` }}>
      <div class="split-list">{list}</div>
      {isOpen && (
        <div
          class="split-bar"
          role="separator"
          aria-orientation="vertical"
          aria-label="Width of the list"
          aria-valuenow={Math.round(share.value)}
          aria-valuemin={25}
          aria-valuemax={75}
          tabIndex={0}
          onPointerDown={drag}
          onKeyDown={(event) => {
            if (event.key === "ArrowLeft") set(share.value - 2);
            if (event.key === "ArrowRight") set(share.value + 2);
          }}
        />
      )}
      {isOpen && (
        <section class="split-inspector" aria-label="Details" ref={details} tabIndex={-1}>
          {inspector}
        </section>
      )}
    </div>
  );
}

/** The screen position of a row of the list. */
type Place = { row: HTMLElement; top: number; isSelected: boolean };

/** Keeps the list's scroll position when the inspector opens and closes, by a link, a key and the browser's Back. */
function usePlace(frame: RefObject<HTMLElement | null>, details: RefObject<HTMLElement | null>, isOpen: boolean): void {
  const wasOpen = useRef(isOpen);
  const places = useRef<readonly Place[]>(undefined);
  // The browser scrolls the page before it reports a step back, and reports the scroll afterwards.
  const scrolled = useRef(scrollY);
  useEffect(() => {
    const follow = () => {
      scrolled.current = scrollY;
    };
    addEventListener("scroll", follow, { passive: true });
    keepsPlace.current = (to) => {
      const isHere = pageOf(pathOf(to))?.page === pageOf(path.peek())?.page;
      return isHere && (frame.current?.firstElementChild?.checkVisibility() ?? false);
    };
    return () => {
      removeEventListener("scroll", follow);
      keepsPlace.current = () => false;
    };
  }, []);
  if (isOpen !== wasOpen.current && frame.current?.firstElementChild?.checkVisibility())
    places.current = placesIn(frame.current.firstElementChild, scrollY - scrolled.current);
  useLayoutEffect(() => {
    if (isOpen === wasOpen.current) return;
    wasOpen.current = isOpen;
    if (isOpen && !document.activeElement?.checkVisibility()) details.current?.focus();
    if (!frame.current?.firstElementChild?.checkVisibility()) return scrollTo({ top: 0, behavior: "instant" });
    // The page opened with the inspector, so its list was never shown.
    if (!places.current) return scrollTo({ top: 0, behavior: "instant" });
    const stayed = places.current.filter(({ row }) => row.isConnected);
    const place = stayed.find(({ row, isSelected }) => isSelected || row.ariaSelected === "true") ?? stayed[0];
    if (place) scrollBy({ top: place.row.getBoundingClientRect().top - place.top, behavior: "instant" });
    scrolled.current = scrollY;
  }, [isOpen]);
}

/** The visible rows, at their positions before the page was scrolled by `moved`. */
function placesIn(list: Element, moved: number): Place[] {
  return [...list.querySelectorAll<HTMLElement>("tbody tr")].flatMap((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    const isSeen = bottom + moved > 0 && top + moved < innerHeight;
    return isSeen ? [{ row, top: top + moved, isSelected: row.ariaSelected === "true" }] : [];
  });
}
