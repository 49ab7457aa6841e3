import type { LoopLag } from "#observe/loop-lag.ts";
import type { HealthPart } from "#store/store.ts";

const STALL_SECONDS = 1;

/** How the process is, as health tells it. The event loop is watched from the first time that somebody asks. */
export const createProcessHealth =
  ({ isShort, lag }: { isShort: () => boolean; lag: LoopLag }) =>
  (isAsked: boolean): HealthPart[] => {
    const parts = [part("memory", isShort() ? "Memory is short: new turns are refused until some have ended." : null)];
    if (!isAsked && !lag.isMeasured()) return parts;
    const { max } = lag.read();
    const stalled = `It stood still for ${max.toFixed(1)} s in the last seconds: something here computes for too long.`;
    return [...parts, part("eventLoop", max >= STALL_SECONDS ? stalled : null)];
  };

const part = (name: string, detail: string | null): HealthPart => ({
  name,
  status: detail === null ? "ok" : "degraded",
  detail,
});
