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
/** A process that answers its first calls has itself waits of tens of milliseconds: the calls are warm, as a running gateway's are. */
const WARM_S = 2;
const LONGEST_BEAT_MS = 30_000;
/** A load that mostly came when the beat was over says nothing of it. */
const LEAST_SHARE = 0.75;

/** Whether the process has run a beat before: of the first, nothing was compiled. */
type Kind = "first" | "later";
type Seen = { idle: number; during: number; worst: number; usual: number; beatMs: number; pause: number };

/** P15: how P1's calls fare while a beat hands over 100 000 events that were queued, the first of a process and one after it. */
export const measureBeat = async ({ rounds, short, say }: BenchOptions): Promise<Figure[]> => {
  const events = short ? 50_000 : 100_000;
  const why = whyNoLoad();
  if (why) return [unmeasured("P15", `a beat with ${events} events`, why)];
  const seen: Record<Kind, Seen[]> = { first: [], later: [] };
  for (let round = 0; round < rounds; round++) {
    say(`P15: round ${round + 1} of ${rounds}, ${events} events`);
    await using server = await startPreloaded({ sessions: SESSIONS, turns: SESSIONS, events });
    await using client = await openKept(server.url, { call: messageCall(), sessions: SESSIONS });
    await client.run(WARM_S);
    seen.first.push(await measureOne(server.ask, client.run, events));
    await server.ask("fill");
    seen.later.push(await measureOne(server.ask, client.run, events));
  }
  return [
    ...figuresOf(`the first beat of a process, with ${events} events`, seen.first),
    ...figuresOf(`a later beat with ${events} events`, seen.later),
  ];
};

type Server = Awaited<ReturnType<typeof startPreloaded>>;
type Client = Awaited<ReturnType<typeof openKept>>;

const measureOne = async (ask: Server["ask"], run: Client["run"], events: number): Promise<Seen> => {
  await ask("watch");
  const idle = await run(LOAD_S);
  const { worst: usual } = await ask<Delays>("delays");
  await ask("watch");
  await ask("beat");
  const during = await run(LOAD_S);
  for (const load of [idle, during]) requireClean(load, "P15");
  const { beatMs, handed } = await untilHandled(() => ask<EventsLeft>("events"));
  if (handed < events) throw new Error(`the beat handed over ${handed} of ${events} events`);
  const { worst, worstPause: pause } = await ask<Delays>("delays");
  return { idle: idle.p99, during: during.p99, worst, usual, beatMs, pause };
};

const figuresOf = (name: string, seen: readonly Seen[]): Figure[] => {
  const list = (pick: (round: Seen) => number) => seen.map((round) => Math.round(pick(round))).join(", ");
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
