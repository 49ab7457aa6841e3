import { messageCall } from "./calls.ts";
import { type Figure, measure, unmeasured } from "./figures.ts";
import { SQLITE, startPreloaded } from "./gateways.ts";
import { requireClean, runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { Delays } from "./servers/preloaded.ts";
import { completedTurns, requireEnded } from "./turns.ts";

const SESSIONS = 1_000;
/** The load goes on until so many full collections were seen: a figure from between two of them would flatter. */
const FULL_COLLECTIONS = 2;
const LONGEST_S = 90;

/** P11: how late the event loop is under P1's load, with a million messages in memory. */
export const measureLoop = (options: BenchOptions): Promise<Figure[]> => measureLoopOn(options, "");

/** The same with the messages in a file. */
export const measureLoopOnSqlite = (options: BenchOptions): Promise<Figure[]> =>
  measureLoopOn(options, " on SQLite", SQLITE);

const measureLoopOn = async (
  { rounds, seconds, short, say }: BenchOptions,
  where: string,
  store?: object,
): Promise<Figure[]> => {
  const messages = short ? 100_000 : 1_000_000;
  const name = `event loop with ${messages} messages${where}`;
  const why = whyNoLoad();
  if (why) return [unmeasured("P11", name, why)];
  const seen: (Delays & { seconds: number; rate: number; max: number })[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`P11: round ${round + 1} of ${rounds}, ${messages} messages`);
    await using server = await startPreloaded({ sessions: SESSIONS, turns: messages / 2, ...(store && { store }) });
    const load = { url: server.url, pid: server.pid, call: messageCall(), sessions: SESSIONS };
    await runLoad({ ...load, seconds: 2, seed: 1 });
    await server.ask("watch");
    let [spent, max, requests] = [0, 0, 0];
    let delays: Delays;
    do {
      const before = await completedTurns(server.url);
      const run = await runLoad({ ...load, seconds, seed: spent + 2 });
      requireClean(run, "P11");
      await requireEnded(server.url, before + run.requests);
      [spent, max, requests] = [spent + seconds, Math.max(max, run.max), requests + run.requests];
      delays = await server.ask<Delays>("delays");
    } while (!short && delays.fullCollections < FULL_COLLECTIONS && spent < LONGEST_S);
    seen.push({ ...delays, seconds: spent, rate: requests / spent, max });
  }
  const list = (pick: (round: (typeof seen)[number]) => number) =>
    seen.map((round) => Math.round(pick(round))).join(", ");
  return [
    measure(
      seen.map(({ p999 }) => p999),
      {
        gate: "P11",
        figure: `${name}, p99.9`,
        unit: "ms",
        bound: { atMost: 50 },
        note: `rounds of ${list((r) => r.seconds)} s at ${list((r) => r.rate)} requests/s with ${list((r) => r.fullCollections)} full collections`,
      },
    ),
    measure([Math.max(...seen.map(({ worst }) => worst))], {
      gate: "P11",
      figure: `${name}, worst of all rounds`,
      unit: "ms",
      bound: { atMost: 120 },
      note: `each round's worst: ${list((r) => r.worst)} ms; longest pause of a collection: ${list((r) => r.worstPause)} ms; slowest answer: ${list((r) => r.max / 1_000)} ms`,
    }),
  ];
};
