import type { Core } from "#core/core.ts";
import { storeTrouble } from "#core/health.ts";
import { GatewayError } from "#kit/errors.ts";
import type { LoopLag } from "#observe/loop-lag.ts";
import type { Readiness } from "#wire/pages/ops.ts";

const PING_MS = 1_000;

type ReadinessParts = { core: Core; isDraining: () => boolean; isShort: () => boolean; lag: LoopLag };

/** What takes work and what does not, part by part. */
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

const STALL_SECONDS = 1;

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
