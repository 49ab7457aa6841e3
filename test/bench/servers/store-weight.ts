import { systemClock } from "#kit/clock.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import { chatSessionId, fillStore } from "./filler.ts";

// Fills a memory store as specified by its argument, and prints its memory. Must run with --expose-gc, in a separate process for each measurement.

export type Weight = { bytes: number; counted: number };

const { turns, sessions } = JSON.parse(process.argv[2] ?? "{}") as { turns: number; sessions: number };

async function weigh(): Promise<number> {
  for (let times = 0; times < 3; times++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // No other figure includes the shared part.
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const store = createMemoryStore({ clock: systemClock });
// The code that the first turns compile is not part of their memory.
await fillStore(store, { turns: 2_000, sessionIds: [chatSessionId()] });
const [bytesBefore, countedBefore] = [await weigh(), store.stats().bytes];
await fillStore(store, { turns, sessionIds: Array.from({ length: sessions }, chatSessionId) });
const bytes = (await weigh()) - bytesBefore;
const weight: Weight = { bytes, counted: store.stats().bytes - countedBefore };
process.stdout.write(JSON.stringify(weight));
