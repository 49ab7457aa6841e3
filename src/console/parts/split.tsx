import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { browserStorage } from "#console/lib/storage.ts";
import { useKeys } from "../app/keys.ts";

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
  const wasOpen = useRef(Boolean(inspector));
  const isOpen = Boolean(inspector);
  useLayoutEffect(() => {
    const opened = isOpen && !wasOpen.current;
    wasOpen.current = isOpen;
    if (opened && !document.activeElement?.checkVisibility()) details.current?.focus();
  }, [isOpen]);
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
  // The list stays the same element, so that the focus stays where it is.
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
