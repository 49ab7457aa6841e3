import type { Core } from "#core/core.ts";
import { storeTrouble } from "#core/health.ts";
import { GatewayError } from "#kit/errors.ts";
import type { LoopLag } from "#observe/loop-lag.ts";
import type { HealthPart } from "#store/store.ts";
import type { Readiness } from "#wire/pages/ops.ts";

const STALL_SECONDS = 1;

/** The parts of health that tell of the process. The event loop is watched from the first time that somebody asks. */
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

const PING_MS = 1_000;

type ReadinessParts = { core: Core; isDraining: () => boolean; isShort: () => boolean; lag: LoopLag };

/** The parts of the gateway, and whether each takes work. */
export const readinessOf = async (
  { core, isDraining, isShort, lag }: ReadinessParts,
  restOpen: boolean,
): Promise<Readiness> => {
  const parts: Readiness["parts"] = {
    store: await answersInTime(core.store.ping()),
    rest: restOpen ? { ok: true } : { ok: false, detail: "The contract is still being compiled." },
    intake: isDraining() ? { ok: false, detail: "The gateway is draining." } : { ok: true },
    memory: isShort() ? { ok: false, detail: "The heap is nearly full." } : { ok: true },
    loop: loopOf(lag),
  };
  return { ready: Object.values(parts).every(({ ok }) => ok), parts };
};

const loopOf = (lag: LoopLag): { ok: boolean; detail?: string } => {
  const { max } = lag.read();
  return max < STALL_SECONDS
    ? { ok: true }
    : { ok: false, detail: `The event loop stood still for ${max.toFixed(1)} s.` };
};

const answersInTime = async (ping: Promise<void>): Promise<{ ok: boolean; detail?: string }> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new GatewayError("store-unavailable")), PING_MS);
  });
  try {
    await Promise.race([ping, late]);
    return { ok: true };
  } catch (error) {
    return { ok: false, detail: `${storeTrouble(error)}.` };
  } finally {
    clearTimeout(timer);
  }
};
