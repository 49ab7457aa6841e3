import { totalmem } from "node:os";
import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import type { Core } from "#core/core.ts";
import { partOf } from "#core/health.ts";
import type { Clock } from "#kit/clock.ts";
import type { LoopLag } from "#observe/loop-lag.ts";
import type { HealthPart } from "#store/store.ts";
import type { Readiness } from "#wire/pages/ops.ts";

const STALL_SECONDS = 1;

type ProcessParts = { isShort: () => boolean; lag: LoopLag };

/** The parts of health for the process. */
export function createProcessHealth({ isShort, lag }: ProcessParts) {
  return (): HealthPart[] => {
    const memory = isShort() ? "Memory is low: new turns are refused until running turns end." : undefined;
    const { max } = lag.read();
    const stalled = `It was blocked for ${max.toFixed(1)} s in the last seconds: a task of this process takes too long.`;
    return [partOf("memory", memory), partOf("eventLoop", max >= STALL_SECONDS ? stalled : undefined)];
  };
}

/** The parts of the gateway, and whether each accepts work. */
export async function readinessOf(
  { core, isDraining, isShort, lag }: ProcessParts & { core: Core; isDraining: () => boolean },
  isRestReady: boolean,
): Promise<Readiness> {
  const trouble = await core.health.storeTrouble();
  const { max } = lag.read();
  const faults = {
    store: trouble && `${trouble}.`,
    rest: isRestReady ? undefined : "The API is still being loaded.",
    intake: isDraining() ? "The gateway is draining." : undefined,
    memory: isShort() ? "The heap is nearly full." : undefined,
    loop: max < STALL_SECONDS ? undefined : `The event loop was blocked for ${max.toFixed(1)} s.`,
  };
  const parts = Object.entries(faults).map(([name, detail]) => [name, detail ? { ok: false, detail } : { ok: true }]);
  return { ready: Object.values(faults).every((fault) => fault === undefined), parts: Object.fromEntries(parts) };
}

const POLL_MS = 500;
/** Above this share of the limit it checks more often, because the rest may be filled within that time. */
const NEAR = 0.75;
const POLL_SOON_MS = 50;
/** Past this share of the old space, collections free too little: new work would end the process. */
const HEAP_SHARE = 0.8;
/** The room that answers, reads and the drain need in a heap of any size. */
const HEAP_RESERVE = 12 * 2 ** 20;
/** Past this share of what the process may have, the system would end it. */
const MEMORY_SHARE = 0.9;

/** The memory that the process holds and may hold, in bytes. */
type Memory = { heap: number; heapLimit: number; resident: number; residentLimit: number };

/** Tells when memory is short, looking at most twice a second as long as there is plenty. */
export function createPressure(clock: Pick<Clock, "monotonic">, read: () => Memory = readMemory) {
  let pollAt = -Infinity;
  let short = false;
  return (): boolean => {
    const now = clock.monotonic();
    if (now >= pollAt) {
      const { heap, heapLimit, resident, residentLimit } = read();
      const heapEnd = Math.min(heapLimit * HEAP_SHARE, heapLimit - HEAP_RESERVE);
      const part = Math.max(heap / heapEnd, resident / (residentLimit * MEMORY_SHARE));
      short = part > 1;
      pollAt = now + (part > NEAR ? POLL_SOON_MS : POLL_MS);
    }
    return short;
  };
}

function readMemory(): Memory {
  watchCollections();
  return { heap: heapAfterCollection, heapLimit: oldSpaceLimit(), resident: process.memoryUsage.rss(), residentLimit };
}

/** The system's own limit is that of a container; without one it is larger than the memory. */
const residentLimit = Math.min(process.constrainedMemory() || Infinity, totalmem());

/** The bytes that the last full collection left in the old space. The current use is partly garbage, and not meaningful. */
let heapAfterCollection = 0;
let observer: PerformanceObserver | undefined;

function watchCollections(): void {
  if (observer) return;
  observer = new PerformanceObserver((list) => {
    if (list.getEntries().some(isFull)) heapAfterCollection = oldSpaceUsed();
  });
  observer.observe({ entryTypes: ["gc"] });
}

function isFull(entry: PerformanceEntry): boolean {
  return (entry as { detail?: { kind?: number } }).detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
}

function oldSpaceUsed(): number {
  return getHeapSpaceStatistics().reduce(
    (sum, { space_name, space_used_size }) => sum + (space_name.startsWith("new_") ? 0 : space_used_size),
    0,
  );
}

/** V8 reports the limit of both spaces together: the young one has three semi-spaces, by default of 16 MiB. */
function oldSpaceLimit(): number {
  const { heap_size_limit: whole } = getHeapStatistics();
  return Math.max(whole - 3 * SEMI_SPACE, whole / 4);
}
const options = `${process.env.NODE_OPTIONS ?? ""} ${process.execArgv.join(" ")}`;
const SEMI_SPACE = Number(/--max[-_]semi[-_]space[-_]size[= ](\d+)/.exec(options)?.[1] ?? 16) * 2 ** 20;
