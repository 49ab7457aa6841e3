import { signal } from "@preact/signals";
import { rawFetch } from "./api.ts";
import { isAway } from "./clock.ts";
import { liveState, onPush, onReturn } from "./live.ts";

const POLL_MS = 15_000;
/** A shorter interval while the gateway is unavailable. */
const POLL_AGAIN_MS = 1_000;

type Readiness = { ready: boolean; parts: Record<string, { ok: boolean; detail?: string }> };

/** The reason why the gateway is not ready for work: a word, and the cause. Undefined while it is ready or the state is unknown. */
export const notReady = signal<{ word: string; detail: string } | undefined>(undefined);

async function poll(): Promise<void> {
  if (document.hidden) return;
  try {
    const response = await rawFetch("/readyz", { cache: "no-store" });
    const { ready, parts } = (await response.json()) as Readiness;
    isAway.value = false;
    const faults = Object.values(parts).filter(({ ok }) => !ok);
    const detail = faults.map(({ detail: cause = "" }) => cause).join(" ");
    notReady.value = ready ? undefined : { word: parts.intake?.ok === false ? "Draining" : "Not ready", detail };
  } catch {
    // A draining gateway closes its listeners, but its streams remain until the last turn has ended.
    isAway.value = liveState.peek() !== "live";
    if (isAway.peek()) notReady.value = undefined;
    else notReady.value ??= { word: "Draining", detail: "New connections are refused." };
  }
}

/** Polls the readiness of the gateway, and reads it at once after a push of a changed health. */
export function watchReadiness(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isEnded = false;
  const beat = async () => {
    await poll();
    if (!isEnded) timer = setTimeout(beat, notReady.peek() || isAway.peek() ? POLL_AGAIN_MS : POLL_MS);
  };
  void beat();
  const stops = [
    onReturn(poll),
    liveState.subscribe((state) => state === "reconnecting" && void poll()),
    onPush(({ method }) => method === "health.changed" && void poll()),
  ];
  return () => {
    isEnded = true;
    clearTimeout(timer);
    for (const stop of stops) stop();
    notReady.value = undefined;
    isAway.value = false;
  };
}
