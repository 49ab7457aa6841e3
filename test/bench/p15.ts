import { messageCall } from "./calls.ts";
import { compare, type Figure, measure, unmeasured } from "./figures.ts";
import { startPreloaded } from "./gateways.ts";
import { openKept } from "./kept-load.ts";
import { requireClean } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { Delays, EventsLeft } from "./servers/preloaded.ts";

const SESSIONS = 1_000;
/** Shorter than the beat, so that all of the load meets it. */
const LOAD_S = 1;
const LONGEST_BEAT_MS = 30_000;
/** A load that mostly came when the beat was over says nothing of it. */
const LEAST_SHARE = 0.75;

/** P15: how P1's calls fare while a beat hands over 100 000 events that were queued. */
export const measureBeat = async ({ rounds, short, say }: BenchOptions): Promise<Figure[]> => {
  const events = short ? 50_000 : 100_000;
  const name = `a beat with ${events} events`;
  const why = whyNoLoad();
  if (why) return [unmeasured("P15", name, why)];
  const seen: { idle: number; during: number; worst: number; usual: number; beatMs: number; pause: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`P15: round ${round + 1} of ${rounds}, ${events} events`);
    await using server = await startPreloaded({ sessions: SESSIONS, turns: SESSIONS, events });
    await using client = await openKept(server.url, { call: messageCall(), sessions: SESSIONS });
    // Both of what is compared run code that has run before.
    await client.run(LOAD_S);
    await server.ask("beat");
    await untilHandled(() => server.ask<EventsLeft>("events"));
    await server.ask("fill");
    await server.ask("watch");
    const idle = await client.run(LOAD_S);
    const { worst: usual } = await server.ask<Delays>("delays");
    await server.ask("watch");
    await server.ask("beat");
    const during = await client.run(LOAD_S);
    for (const run of [idle, during]) requireClean(run, "P15");
    const { beatMs, handed } = await untilHandled(() => server.ask<EventsLeft>("events"));
    if (handed < events) throw new Error(`the beat handed over ${handed} of ${events} events`);
    const { worst, worstPause: pause } = await server.ask<Delays>("delays");
    seen.push({ idle: idle.p99, during: during.p99, worst, usual, beatMs, pause });
  }
  const list = (pick: (round: (typeof seen)[number]) => number) =>
    seen.map((round) => Math.round(pick(round))).join(", ");
  const share = Math.min(...seen.map(({ beatMs }) => beatMs)) / (LOAD_S * 1_000);
  const isMet = share >= LEAST_SHARE;
  return [
    compare(
      seen.map(({ during }) => during),
      seen.map(({ idle }) => idle),
      {
        gate: "P15",
        figure: `/rpc during ${name}, p99`,
        unit: "us",
        ...(isMet && { bound: { atMost: 3, what: "x without" } }),
        note:
          `${isMet ? "" : "not judged, as the load went on when the beat was over: "}P1's calls without a rest, one on each of 50 ` +
          `connections that stood before, for ${LOAD_S} s from the beat's begin; the beats took ${list(({ beatMs }) => beatMs)} ms`,
      },
    ),
    measure([Math.max(...seen.map(({ worst }) => worst))], {
      gate: "P15",
      figure: `event loop during ${name}, worst of all rounds`,
      unit: "ms",
      bound: { atMost: 20 },
      note:
        `each round's worst: ${list(({ worst }) => worst)} ms, and without a beat ${list(({ usual }) => usual)} ms; longest pause of ` +
        `a collection: ${list(({ pause }) => pause)} ms`,
    }),
  ];
};

/** The beat when it has ended; throws unless every event was handled. */
const untilHandled = async (ask: () => Promise<EventsLeft>): Promise<{ beatMs: number; handed: number }> => {
  const end = performance.now() + LONGEST_BEAT_MS;
  for (;;) {
    const { queued, dead, beatMs, handed } = await ask();
    if (dead > 0) throw new Error(`${dead} events are dead`);
    if (queued === 0 && beatMs !== null) return { beatMs, handed };
    if (performance.now() > end) throw new Error(`${queued} events wait after ${LONGEST_BEAT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
