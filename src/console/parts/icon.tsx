import icons from "virtual:icons";
import { h } from "preact";

/** A drawing next to a word. It has no meaning of its own, so screen readers ignore it. */
export function Icon({ name, size = 16 }: { name: string; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {(icons[name] ?? []).map(([tag, attributes], n) => h(tag, { key: n, ...attributes }))}
    </svg>
  );
}
