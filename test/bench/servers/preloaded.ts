import { monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver, constants as perf } from "node:perf_hooks";
import { start } from "#cli/serve.ts";
import { silent } from "#test/stores/world.ts";
import { fillEvents, fillStore, loadSessionId } from "./filler.ts";

// The complete gateway, like `node dist/main.js --config FILE`, with a full store at its start. It communicates with the bench over IPC: one command,
// one answer.

export type Loaded = { url: string };
export type Delays = {
  p999: number;
  worst: number;
  fullCollections: number;
  worstPause: number;
};
/** `beatMs` is null until the end of the beat, which handled the events. */
export type EventsLeft = { queued: number; dead: number; beatMs: number | null; handed: number };

const options = JSON.parse(process.argv[2] ?? "{}") as {
  config: string;
  sessions: number;
  turns: number;
  events: number;
};
const { gateway } = await start({ config: options.config, port: "0" }, process.env);
await gateway.ready;

let beatAt = 0;
let beatMs: number | null = null;
let handed = 0;
// From the start: a watcher with another shape than the gateway's own would cause a recompilation while a beat is measured.
gateway.store.watch({
  ...silent,
  gatewayEntries: (entries) => {
    const ran = entries.find((entry) => entry.name === "heartbeat.ran");
    if (ran) [beatMs, handed] = [performance.now() - beatAt, ran.events];
  },
});

const sessionIds = Array.from({ length: options.sessions }, (_, n) => loadSessionId(n));
await fillStore(gateway.store, { turns: options.turns, sessionIds });
await fillEvents(gateway.store, options.events);

const RESOLUTION_MS = 1;
type Collection = PerformanceEntry & { detail: { kind: number } };
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let fullCollections = 0;
let worstPause = 0;
const collections = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { duration, detail } = entry as Collection;
    if (detail.kind === perf.NODE_PERFORMANCE_GC_MAJOR) fullCollections++;
    worstPause = Math.max(worstPause, duration);
  }
});

// Each record is the time between two timer beats: any excess is delay.
function ms(nanoseconds: number) {
  return Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
}

const answers: Record<string, () => unknown> = {
  watch: () => {
    [fullCollections, worstPause] = [0, 0];
    delay.reset();
    delay.enable();
    collections.observe({ entryTypes: ["gc"] });
    return {};
  },
  delays: (): Delays => ({
    p999: ms(delay.percentile(99.9)),
    worst: ms(delay.max),
    fullCollections,
    worstPause,
  }),
  /** Starts a beat of the agent. */
  beat: async () => {
    [beatAt, beatMs] = [performance.now(), null];
    await fillEvents(gateway.store, 1, { beatNow: true });
    return {};
  },
  events: (): EventsLeft => {
    const { eventsQueued: queued, eventsDead: dead } = gateway.store.stats();
    return { queued, dead, beatMs, handed };
  },
};

process.on("message", async (word: string) => process.send?.(await answers[word]?.()));
process.on("disconnect", () => process.exit());
const loaded: Loaded = { url: gateway.urls[0] as string };
process.send?.(loaded);
