import { signal } from "@preact/signals";

/** The present moment, to the second. What shows an age reads it. */
export const now = signal(Date.now());
/** True while the gateway cannot be reached. The clock stops, so that ages keep their last known value. */
export const isAway = signal(false);

function tick(): void {
  if (!document.hidden && !isAway.value) now.value = Date.now();
}
setInterval(tick, 1_000);
document.addEventListener("visibilitychange", tick);
isAway.subscribe((away) => {
  document.documentElement.toggleAttribute("data-away", away);
  tick();
});
