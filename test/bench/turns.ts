import { readMetrics } from "./gateways.ts";

/** What a load starts: it counts only if all of that has ended within 2 s, as to let it wait is no speed. */
export type Work = {
  /** How much of it has ended so far. */
  count(url: string): Promise<number>;
  /** Throws unless within 2 s all that was accepted has ended well, and that is `least` of it. */
  requireEnded(url: string, least: number): Promise<void>;
};

export const ALL_ENDED_MS = 2_000;
const COMPLETED = 'gateway_turns_total{agent="main",status="completed"}';

/** How many turns a gateway has completed so far. */
export const completedTurns = async (url: string): Promise<number> => (await readMetrics(url))(COMPLETED);

/** Log lines that a gateway has dropped so far: without them it is faster than with everything on. */
export const droppedLines = async (url: string): Promise<number> =>
  (await readMetrics(url))("gateway_log_lines_dropped_total ");

/** Throws unless within 2 s nothing waits, nothing runs, and as many turns have completed as were accepted. */
export const requireEnded = async (url: string, accepted: number): Promise<void> => {
  const end = performance.now() + ALL_ENDED_MS;
  for (;;) {
    const read = await readMetrics(url);
    const [queued, running, completed] = [
      read("gateway_turns_queued "),
      read("gateway_turns_running "),
      read(COMPLETED),
    ];
    if (queued === 0 && running === 0 && completed >= accepted) return;
    if (performance.now() > end)
      throw new Error(`after 2 s ${queued} turns wait, ${running} run, ${completed} of ${accepted} have completed`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

export const TURNS: Work = { count: completedTurns, requireEnded };
