import type { AgentCounters } from "./agent-counters.ts";
import type { Database } from "./database.ts";
import type { TotalsRow } from "./totals.ts";

/**
 * When the state is loaded, by the monotonic clock, and how far the wall clock was ahead of that as the process began: monotonic times
 * are kept with `offset` added.
 */
export type Moment = { time: number; offset: number };

/** What each part of the state is loaded with. A part that counts on being flushed has `flush()`, which is called before each commit. */
export type Parts = { db: Database; totals: TotalsRow; agents: AgentCounters; moment: Moment };
