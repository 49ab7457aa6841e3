import { signal } from "@preact/signals";

/** The present moment, to the second. What shows an age reads it. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) now.value = Date.now();
});
