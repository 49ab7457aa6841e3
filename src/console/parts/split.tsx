import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

const KEY = "agent-gateway.split";
const share = signal(Math.min(75, Math.max(30, Number(localStorage.getItem(KEY)) || 58)));

/** A list with an inspector beside it. On a narrow screen the inspector takes the page. */
export const Split = ({ list, inspector }: { list: ComponentChildren; inspector: ComponentChildren | undefined }) => {
  const frame = useRef<HTMLDivElement>(null);
  const set = (next: number) => {
    share.value = Math.min(75, Math.max(30, next));
    localStorage.setItem(KEY, String(Math.round(share.value)));
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
  if (!inspector) return <div class="split single">{list}</div>;
  return (
    <div class="split" ref={frame} style={{ "--share": `${share.value}%` }}>
      <div class="split-list">{list}</div>
      <div
        class="split-bar"
        role="separator"
        aria-orientation="vertical"
        aria-label="Width of the list"
        aria-valuenow={Math.round(share.value)}
        aria-valuemin={30}
        aria-valuemax={75}
        tabIndex={0}
        onPointerDown={drag}
        onKeyDown={({ key }) => {
          if (key === "ArrowLeft") set(share.value - 2);
          if (key === "ArrowRight") set(share.value + 2);
        }}
      />
      <section class="split-inspector" aria-label="Details">
        {inspector}
      </section>
    </div>
  );
};
